// Package steps takes the steps of a command one after another: it prints each with its time, and when a start fails it
// says in which step, why, and what the components had to say.
package steps
