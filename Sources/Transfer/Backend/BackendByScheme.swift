/// The backend that answers for a URL.
/// - Parameters:
///   - proxy: the one that the hop goes through.
///   - login: how the hop presents a login; nil without one.
func backend(for url: URLParts, request: FetchRequest, proxy: Proxy?, login: LoginManner?) -> any Backend {
  url.scheme.isHTTP
    ? HTTPBackend(url: url, proxy: proxy, login: login, isDecoding: request.decodes)
    : FileBackend(url: url, offset: request.rangeStart ?? 0)
}
