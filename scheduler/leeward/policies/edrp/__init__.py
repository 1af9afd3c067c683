"""EDRP and S-EDRP: replication and placement solved together, exactly or by the paper's programmes.

policy.py      decides each period                    settings.py    the policy's settings
problem/       the problem, its checks and its evaluation by the paper's definitions
milp/          the integer programmes                  exact/         our branch and bound
methods/       one call for all methods                questions/     explain, what-if, relax, trade-offs
experiments/   the paper's tables                      views/         explanations as text, page and picture
"""
