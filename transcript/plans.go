package transcript

import "context"

// Slugs returns the names of the session's plans: those that are known, and
// those that the transcript's records from the offset from on have. end is the
// from of the next call: a last line that is not complete is searched again.
// With an error come the names found so far. A husk has none but known.
func (b Bundle) Slugs(ctx context.Context, from int64, known []string) (slugs []string, end int64, err error) {
	if b.Husk() {
		return known, 0, nil
	}
	f, _, err := b.Open()
	if err != nil {
		return known, from, err
	}
	defer f.Close()
	return findSlugs(ctx, f, from, known)
}
