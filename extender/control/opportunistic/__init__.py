"""Opportunistic pods: which may be, how a pod becomes one and regular again, and what room there is for them.

Room is what regular pods have reserved and do not use, as far as that was measured (UBIS, IV).
"""
