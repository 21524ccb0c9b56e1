// Package progress shows how far a long command has come, on a terminal only.
package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Bar is a line that fills up. The nil Bar shows nothing.
type Bar struct {
	bar *progressbar.ProgressBar
}

const (
	redrawEvery = 100 * time.Millisecond
	barCells    = 24
)

// Bytes makes a bar over a number of bytes; a total under zero is not known.
// It is nil, and so silent, unless w is a terminal.
func Bytes(w io.Writer, terminal bool, total int64, what string) *Bar {
	return start(w, terminal, total, what, progressbar.OptionShowBytes(true))
}

// Count makes a bar over a number of things.
func Count(w io.Writer, terminal bool, total int64, what string) *Bar {
	return start(w, terminal, total, what, progressbar.OptionShowCount())
}

func start(w io.Writer, terminal bool, total int64, what string, o progressbar.Option) *Bar {
	if !terminal {
		return nil
	}
	return &Bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(barCells),
		progressbar.OptionThrottle(redrawEvery),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
		o,
	)}
}

// A bar that cannot be drawn must not stop the work it tells of, so the
// errors of drawing end here.

// Add moves the bar by n.
func (b *Bar) Add(n int64) {
	if b != nil {
		_ = b.bar.Add64(n)
	}
}

// Set moves the bar to n of total.
func (b *Bar) Set(n, total int64) {
	if b == nil {
		return
	}
	if total != b.bar.GetMax64() {
		b.bar.ChangeMax64(total)
	}
	_ = b.bar.Set64(n)
}

// Say replaces the words before the bar.
func (b *Bar) Say(format string, args ...any) {
	if b != nil {
		b.bar.Describe(fmt.Sprintf(format, args...))
	}
}

// Done takes the bar off the screen.
func (b *Bar) Done() {
	if b != nil {
		_ = b.bar.Finish()
		_ = b.bar.Clear()
	}
}
