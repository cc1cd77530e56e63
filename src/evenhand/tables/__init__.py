"""What rows are: read once, told once, encoded once, for everything that takes tables.

`read` gives the rows of a file or frame in Arrow, with every cell of text as it is written. `infer` tells a `Schema`
from them: what each column holds and what it is used for. `Schema.read` gives typed rows, or says what is wrong with
which row. `Encoder` makes numbers of typed rows. `find_groups` and `find_labels` tell groups and classes. `stored`
keeps typed rows as text; `writing` writes tables that no spreadsheet runs.
"""
