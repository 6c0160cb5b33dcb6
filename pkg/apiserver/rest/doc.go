// Package rest answers the resource requests of the API over HTTP: it reads what is asked (Info), agrees on a form of
// the answer (negotiation), and has one file per verb. Objects travel as bytes from storage to the client wherever the
// client asked for them as they are: a list is a concatenation, a watch event is encoded once for all watchers.
package rest
