/// The backend that answers for a URL.
/// - Parameter proxy: the one that the hop goes through.
func backend(for url: URLParts, request: FetchRequest, proxy: Proxy?) -> any Backend {
  url.scheme.isHTTP
    ? HTTPBackend(url: url, proxy: proxy) : FileBackend(url: url, offset: request.rangeStart ?? 0)
}
