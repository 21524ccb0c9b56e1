package hooklib

import (
	"os"
	"time"
)

// deadlineReader reads a file until a deadline. Standard input of a hook is a
// socket or a pipe in blocking mode, to which the runtime sets no deadlines;
// making it non-blocking would change it for the processes that share it. So
// where the runtime refuses, the reader waits for bytes before each read. No
// goroutine is left behind in a read.
type deadlineReader struct {
	file     *os.File
	deadline time.Time
	wait     bool
}

func newDeadlineReader(f *os.File, deadline time.Time) *deadlineReader {
	r := &deadlineReader{file: f, deadline: deadline}
	if !deadline.IsZero() {
		r.wait = f.SetReadDeadline(deadline) != nil
	}
	return r
}

// Read returns os.ErrDeadlineExceeded at the deadline.
func (r *deadlineReader) Read(p []byte) (int, error) {
	if r.wait {
		// A file that never stops giving bytes must end as well.
		if !time.Now().Before(r.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		ready, err := waitReadable(r.file, r.deadline)
		if err != nil {
			return 0, err
		}
		if !ready {
			return 0, os.ErrDeadlineExceeded
		}
	}
	return r.file.Read(p)
}
