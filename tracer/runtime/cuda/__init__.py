"""GPUs: arrays on a device, programs that run there, and the drivers of devices: CuPy's and the simulator's."""
