package servers

import (
	"errors"
	"net"
	"os"
	"strings"
)

func external(variable string) (string, bool) {
	value := os.Getenv(variable)
	return value, value != ""
}

// parseAccount reads user:password@host:port. The password may hold any character.
func parseAccount(text string) (user, password, addr string, err error) {
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return "", "", "", errors.New("not of the form user:password@host:port")
	}
	user, password, _ = strings.Cut(text[:at], ":")
	addr = text[at+1:]
	if user == "" {
		return "", "", "", errors.New("not of the form user:password@host:port")
	}
	_, _, err = net.SplitHostPort(addr)
	return user, password, addr, err
}
