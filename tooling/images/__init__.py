"""What an image build will do, what is inside a built image, and whether that is what the pins say. Touches nothing."""
