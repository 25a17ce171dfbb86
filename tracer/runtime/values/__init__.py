"""Values between Python and native code: wrapping, copying, transfer, result memory."""
