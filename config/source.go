package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/dlclark/regexp2"
)

// Addresses are the servers that may be the source, host first, each as host:port.
func (s Source) Addresses() []string {
	var all []string
	port := strconv.Itoa(s.Port)
	if s.Host != "" {
		all = append(all, net.JoinHostPort(s.Host, port))
	}
	for _, h := range s.Hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
		all = append(all, h)
	}
	return all
}

// Origins tells whether transactions of a server UUID, as the server writes it,
// count; nil when all do. The function is safe for concurrent use.
func (s Source) Origins() (func(uuid string) bool, error) {
	list, key, in := s.GTIDInclude, "gtid_include", true
	if len(list) == 0 {
		list, key, in = s.GTIDExclude, "gtid_exclude", false
	}
	if len(list) == 0 {
		return nil, nil
	}
	var patterns []*regexp2.Regexp
	for _, p := range list {
		re, err := compileWhole(strings.TrimSpace(p), regexp2.IgnoreCase)
		if err != nil {
			return nil, &FieldError{Path: "source." + key, Err: fmt.Errorf("%q: %w", p, err)}
		}
		patterns = append(patterns, re)
	}
	return func(uuid string) bool {
		matches := slices.ContainsFunc(patterns, func(re *regexp2.Regexp) bool {
			ok, err := re.MatchString(uuid) // the error is that of a time limit, and none is set
			return ok && err == nil
		})
		return matches == in
	}, nil
}
