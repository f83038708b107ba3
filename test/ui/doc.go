// Package ui opens the page of a node in a real Chromium: it is read, looked at,
// checked for accessibility and clicked through.
package ui
