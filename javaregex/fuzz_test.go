package javaregex

import (
	"errors"
	"testing"
)

// Whatever is given, a pattern compiles or is refused, and a match ends.
func FuzzPattern(f *testing.F) {
	f.Add(`([^.]+)\.(.*)`, "$1.${n}", "sales.Order")
	f.Add(`(?x)[a-z&&[^b]]++ # \Q`, `\$`, "a\xff")
	f.Add(`(?<=a{2,3}|(?i)\p{Lu})\R(?>x*?)\1`, "", "\r\n")
	f.Fuzz(func(t *testing.T, pattern, replacement, text string) {
		p, err := CompileFold(pattern)
		if err != nil {
			if e := (*Error)(nil); !errors.As(err, &e) {
				t.Errorf("%T", err)
			}
			return
		}
		if _, err := p.Match(text); err != nil && !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
		if r, err := p.Replacement(replacement); err == nil {
			_, _, _ = r.Replace(text)
		}
	})
}
