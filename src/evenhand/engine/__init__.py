"""The engine: arrays with a trial axis and three steps — refit, choose, record.

`Engine` holds what is known of T trials; a `Memory` holds their example sets and models. `LockstepLogistic` fits T
trials together, `SingleMemory` any learner at T = 1. A campaign is the engine at T = 1 plus requests; `Trials` answers
the asks of T trials from a source; `each_round` is the one loop over rounds, and `run_block` keeps a record of it.
"""
