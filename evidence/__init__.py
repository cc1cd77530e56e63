"""What is measured about the paper, about value and about certificates: scripts, their results, and the pages made of them."""
