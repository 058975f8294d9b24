"""Who may do what, decided purely: no clock, no chance, no disk, no network."""
