"""Graph sizes: replay reduction and retained utility from 50 to 1000 nodes."""
