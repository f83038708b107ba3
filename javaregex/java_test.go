package javaregex

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
)

var (
	fresh = flag.String("java", "", "a Java to be asked, in place of what was recorded")
	seed  = flag.Uint64("seed", 1, "of the generated patterns; another than 1 needs -java")
	write = flag.Bool("write", false, "record what -java answers")
)

const (
	cases        = 12_000
	patternsFile = "testdata/patterns.txt"
	propertyFile = "testdata/properties.txt"
)

func generateCases() []generated {
	r := rand.New(rand.NewPCG(*seed, 17))
	out := make([]generated, cases)
	for i := range out {
		out[i] = newCase(r)
	}
	return out
}

func escapeUnits(s string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(s)) {
		if c > ' ' && c < 127 && c != '\\' {
			b.WriteByte(byte(c))
		} else {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func (g generated) line() string {
	fields := []string{escapeUnits(g.pattern), "0", escapeUnits(g.replacement)}
	if g.fold {
		fields[1] = "2"
	}
	for _, t := range g.texts {
		fields = append(fields, escapeUnits(t))
	}
	return strings.Join(fields, "\t")
}

// askJava hands lines to a Java and returns its answers.
func askJava(t *testing.T, what string, lines []string) []string {
	t.Helper()
	cmd := exec.Command(*fresh, "testdata/Oracle.java", what)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running Java: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
}

func record(t *testing.T, file string, lines []string) {
	t.Helper()
	if !*write {
		return
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ours says what this package does, as Oracle.java does: for a pattern that is
// refused "E", or "refused" when Java may take it.
func ours(g generated) (answer string, tooLong bool) {
	compile := Compile
	if g.fold {
		compile = CompileFold
	}
	p, err := compile(g.pattern)
	if e := (*Error)(nil); errors.As(err, &e) && e.Unsupported {
		return "refused", false
	} else if err != nil {
		return "E", false
	}
	var all []string
	for _, text := range g.texts {
		m := p.start(text)
		m.whole = true
		whole, err := p.atStart(m)
		tooLong = tooLong || err != nil
		matched := groupsText(m, whole, p.groups)
		m = p.start(text)
		found, err := p.atStart(m)
		tooLong = tooLong || err != nil
		answer := matched + ";" + groupsText(m, found, p.groups)
		if whole {
			answer += ";" + replaced(p, g.replacement, text)
		}
		all = append(all, answer)
	}
	return strings.Join(all, "\t"), tooLong
}

func replaced(p *Pattern, replacement, text string) string {
	r, err := p.Replacement(replacement)
	if err != nil {
		return "!"
	}
	out, _, err := r.Replace(text)
	if err != nil {
		return err.Error()
	}
	return escapeUnits(out)
}

func groupsText(m *run, ok bool, groups int) string {
	if !ok {
		return "no"
	}
	var b strings.Builder
	for i := 0; i <= groups; i++ {
		fmt.Fprintf(&b, "%d-%d ", m.groups[2*i], m.groups[2*i+1])
	}
	return b.String()
}

// shorten is what is recorded of an answer.
func shorten(answer string) string {
	if len(answer) <= 1 {
		return answer
	}
	return fmt.Sprintf("%06x", crc32.ChecksumIEEE([]byte(answer))>>8)
}

// Each of the patterns does with each of its texts what it does in Java 17: whether
// it matches the text or its beginning, what its groups catch, what replaces it. Or it is
// refused; that may be few. testdata/patterns.txt holds Java's answers, shortened;
// with -java a Java is asked afresh and differences are shown in full.
func TestAsJava(t *testing.T) {
	t.Parallel()
	all := generateCases()
	lines := make([]string, len(all))
	for i, g := range all {
		lines[i] = g.line()
	}
	sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(strings.Join(lines, "\n"))))
	var want []string
	if *fresh != "" {
		want = askJava(t, "patterns", lines)
		short := []string{sum}
		for _, w := range want {
			short = append(short, shorten(w))
		}
		record(t, patternsFile, short)
	} else {
		want = readLines(t, patternsFile)
		if want[0] != sum {
			t.Fatal("other patterns are generated than were recorded: record them with make java-regex")
		}
		want = want[1:]
	}
	if len(want) != len(all) {
		t.Fatalf("%d answers for %d patterns", len(want), len(all))
	}
	valid, refused, long, different := 0, 0, 0, 0
	for i, g := range all {
		got, tooLong := ours(g)
		if want[i] != "E" {
			valid++
		}
		switch {
		case tooLong:
			long++
		case got == "refused" && want[i] != "E":
			refused++
		case got == "refused" || got == want[i] || *fresh == "" && shorten(got) == want[i]:
		default:
			if different++; different <= 40 {
				t.Errorf("pattern %q (fold %v), replacement %q, texts %q:\n got %s\nwant %s", g.pattern, g.fold, g.replacement,
					g.texts, got, want[i])
			}
		}
	}
	t.Logf("%d patterns, %d of them valid; refused %d, given up %d, different %d", len(all), valid, refused, long,
		different)
	if valid < 10_000 || refused*20 > valid || long*1000 > valid {
		t.Errorf("of %d valid patterns %d are refused and %d given up: too many", valid, refused, long)
	}
}

func propertyLines() []string {
	var lines []string
	for _, name := range properties {
		lines = append(lines, `\p{`+name+"}")
		if strings.ContainsAny(strings.ToLower(name[:1]), "lu") || strings.HasSuffix(strings.ToLower(name), "case") {
			lines = append(lines, `(?i)\p{`+name+"}")
		}
		if posix[strings.ToUpper(name)] != nil {
			lines = append(lines, `(?U)\p{`+name+"}", `(?iU)\p{`+name+"}")
		}
	}
	for _, class := range []string{`\w`, `\d`, `\s`, `\h`, `\v`, "."} {
		lines = append(lines, class, "(?U)"+class)
	}
	lines = append(lines, "(?iu)[a-z]", "(?i)[Z-a]", "(?iu)[À-þ]", "(?iu)k", "(?iu)[ks]", "(?iu)µ", "(?iu)[\u00ff]",
		"(?iu)Σ", "(?u)k", "(?i)é")
	for i, line := range lines {
		lines[i] = escapeUnits(line)
	}
	return lines
}

// Of all the characters that Java 17 knows, the properties hold the same. Names that
// Java does not know are refused.
func TestPropertiesAsJava(t *testing.T) {
	t.Parallel()
	lines := propertyLines()
	var want []string
	if *fresh != "" {
		want = askJava(t, "properties", lines)
		record(t, propertyFile, want)
	} else {
		want = readLines(t, propertyFile)
	}
	var known []rune
	for r := range strings.FieldsSeq(strings.TrimPrefix(want[0], "assigned ")) {
		var lo, hi rune
		if _, err := fmt.Sscanf(r, "%x-%x", &lo, &hi); err != nil {
			t.Fatal(err)
		}
		for c := lo; c <= hi; c++ {
			known = append(known, c)
		}
	}
	crc := crc32.NewIEEE()
	for _, c := range known {
		for _, v := range []rune{unicode.ToUpper(c), unicode.ToLower(c)} {
			crc.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16)})
		}
	}
	if got := fmt.Sprintf("fold %x", crc.Sum32()); got != want[1] {
		t.Errorf("the cases of characters: %s, Java has %s", got, want[1])
	}
	if len(want) != len(lines)+2 {
		t.Fatalf("%d answers for %d lines", len(want), len(lines))
	}
	for i, line := range lines {
		pattern := unescapeUnits(line)
		_, answer, _ := strings.Cut(want[i+2], "\t")
		p := parser{scanner: newScanner(pattern, 0)}
		got := "E"
		if in := oneCharacter(&p); in != nil {
			b := make([]byte, len(known))
			for j, c := range known {
				if in(c) {
					b[j] = 1
				}
			}
			got = fmt.Sprintf("%x", crc32.ChecksumIEEE(b))
		}
		if got != answer {
			t.Errorf("%s: %s, Java has %s", pattern, got, answer)
		}
	}
}

func unescapeUnits(s string) string {
	var out []uint16
	for i := 0; i < len(s); i++ {
		c := uint16(s[i])
		if c == '\\' {
			fmt.Sscanf(s[i+2:i+6], "%x", &c)
			i += 5
		}
		out = append(out, c)
	}
	return string(utf16.Decode(out))
}

// oneCharacter is the set of a pattern that is one; nil when it is refused.
func oneCharacter(p *parser) (in set) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*Error); !ok {
				panic(r)
			}
		}
	}()
	return p.whole().(sequence)[0].(char).in
}

// Deep nesting takes no more than its length to compile.
func TestNestedRepetitions(t *testing.T) {
	p, err := Compile(strings.Repeat("(", 150) + "a" + strings.Repeat(")+", 150))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := p.Match("a"); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := Compile(strings.Repeat("(", 300)); err == nil {
		t.Error("300 levels are taken")
	}
}
