"""Line coverage of the product's C code by its C tests."""
