"""The reference implementation: what `pycobre._native.lp` does, stated in Python, with the same bits.

    chains           the chains of a block: starting bases, openings, cuts, results
    tableau          the dense dual simplex for small LPs
    kernel           the dual simplex on the basis kernel for larger ones: steps and certificate
    kernel_basis     its basis: the kernel's inverse, values and bounds
    kernel_lp        the LP it works on, without columns that equations define, and the way back
    certificate      whether an answer of HiGHS is optimal
    cuts             the value of a cut at a point, and which cuts a solve takes in
    patch            one opening's numbers, read from its patch vector and scaled
    highspy_session  one loaded LP in HiGHS, through highspy

It is written to be read and to be compared with: tests hold it and the compiled path equal byte by byte. It
also solves where the compiled path is missing, some times slower.
"""
