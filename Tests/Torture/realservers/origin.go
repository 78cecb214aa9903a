// Go's server: `origin ROOT PORT [KEY CERTIFICATE]`. As origin.py, and files by http.ServeContent and http.FileServer;
// with TLS if there is a certificate.
package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	root  = os.Args[1]
	seen  = map[string]int{}
	mutex sync.Mutex
)

func dying(answer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	content, err := os.ReadFile(filepath.Join(root, filepath.Base(request.URL.Path)))
	if err != nil {
		http.NotFound(answer, request)
		return
	}
	slow, _ := strconv.ParseFloat(query.Get("slow"), 64)
	time.Sleep(time.Duration(slow * float64(time.Second)))
	deaths, _ := strconv.Atoi(query.Get("deaths"))
	at, _ := strconv.Atoi(query.Get("at"))
	kind := query.Get("kind")
	mutex.Lock()
	seen[query.Get("key")]++
	isDying := seen[query.Get("key")] <= deaths
	mutex.Unlock()
	if query.Has("tag") {
		answer.Header().Set("ETag", `"`+query.Get("key")+`"`)
	}
	if !isDying && query.Has("tag") {
		http.ServeContent(answer, request, "", time.Time{}, bytes.NewReader(content))
		return
	}
	if !isDying {
		for len(content) > 0 {
			size := len(content)
			if size > 65536 {
				size = 65536
			}
			answer.Write(content[:size])
			answer.(http.Flusher).Flush()
			content = content[size:]
		}
		return
	}
	// From its beginning, whatever was asked for, which is allowed.
	if kind == "length" {
		answer.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	answer.WriteHeader(200)
	if kind != "head" {
		answer.Write(content[:at])
	}
	answer.(http.Flusher).Flush()
	time.Sleep(100 * time.Millisecond)
	panic(http.ErrAbortHandler)
}

// Go makes no ETag of its own.
func tagged(tag func(os.FileInfo) string) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		file, err := os.Open(filepath.Join(root, filepath.Base(request.URL.Path)))
		if err != nil {
			http.NotFound(answer, request)
			return
		}
		defer file.Close()
		info, _ := file.Stat()
		answer.Header().Set("ETag", tag(info))
		http.ServeContent(answer, request, info.Name(), info.ModTime(), file)
	}
}

func strong(info os.FileInfo) string {
	return `"` + strconv.FormatInt(info.ModTime().UnixNano(), 36) + `"`
}

func main() {
	files := http.FileServer(http.Dir(root))
	http.HandleFunc("/app/", dying)
	http.Handle("/plain/", http.StripPrefix("/plain", files))
	http.Handle("/date/", http.StripPrefix("/date", files))
	http.HandleFunc("/tagged/", tagged(strong))
	http.HandleFunc("/weak/", tagged(func(info os.FileInfo) string { return "W/" + strong(info) }))
	http.HandleFunc("/none/", func(answer http.ResponseWriter, request *http.Request) {
		content, err := os.ReadFile(filepath.Join(root, filepath.Base(request.URL.Path)))
		if err != nil {
			http.NotFound(answer, request)
			return
		}
		http.ServeContent(answer, request, "", time.Time{}, bytes.NewReader(content))
	})
	http.HandleFunc("/noranges/", func(answer http.ResponseWriter, request *http.Request) {
		request.Header.Del("Range")
		tagged(strong)(answer, request)
	})
	http.HandleFunc("/moved/", func(answer http.ResponseWriter, request *http.Request) {
		http.Redirect(answer, request, strings.Replace(request.URL.Path, "/moved", "/plain", 1), http.StatusFound)
	})
	address := "127.0.0.1:" + os.Args[2]
	if len(os.Args) > 3 {
		panic(http.ListenAndServeTLS(address, os.Args[4], os.Args[3], nil))
	}
	panic(http.ListenAndServe(address, nil))
}
