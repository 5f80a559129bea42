"""Operations that keep the lake correct: decisions on failures, expiry, reconciliation."""
