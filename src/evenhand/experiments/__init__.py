"""The paper's figures and its table, run again and compared: what `evenhand reproduce` does.

An experiment is one small module: what to run (`Study`), and what to make of it (`find`: a figure, numbers beside the
paper's, a verdict for each claim). Finished trials are kept by their settings, seed and number, so that a run can be
stopped, resumed and extended.
"""
