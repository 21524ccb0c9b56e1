package transcript

import (
	"encoding/binary"
	"math/bits"
)

// The constants of wyhash.
const (
	wy0 = 0xa0761d6478bd642f
	wy1 = 0xe7037ed1a0b428db
	wy2 = 0x8ebc6af09c88c6e3
	wy3 = 0x589965cc75374cc3
)

// wyhash is the 64-bit hash, seed 0, that Bun.hash gives for a string's UTF-8 bytes.
// Older builds of the client used it in the names of long project folders.
func wyhash(b []byte) uint64 {
	mix := func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return hi ^ lo
	}
	r8 := func(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }
	r4 := func(p []byte) uint64 { return uint64(binary.LittleEndian.Uint32(p)) }

	n := len(b)
	seed := mix(wy0, wy1)
	var x, y uint64
	switch {
	case n > 16:
		p := b
		if n >= 48 {
			s1, s2 := seed, seed
			for len(p) > 48 {
				seed = mix(r8(p)^wy1, r8(p[8:])^seed)
				s1 = mix(r8(p[16:])^wy2, r8(p[24:])^s1)
				s2 = mix(r8(p[32:])^wy3, r8(p[40:])^s2)
				p = p[48:]
			}
			seed ^= s1 ^ s2
		}
		for len(p) > 16 {
			seed = mix(r8(p)^wy1, r8(p[8:])^seed)
			p = p[16:]
		}
		x, y = r8(b[n-16:]), r8(b[n-8:])
	case n >= 4:
		quarter := n >> 3 << 2
		x = r4(b)<<32 | r4(b[quarter:])
		y = r4(b[n-4:])<<32 | r4(b[n-4-quarter:])
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	hi, lo := bits.Mul64(x^wy1, y^seed)
	return mix(lo^wy0^uint64(n), hi^wy1)
}
