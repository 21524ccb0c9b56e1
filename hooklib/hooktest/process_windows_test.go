package hooktest

func ignoreTerm() {} // there is no such signal
