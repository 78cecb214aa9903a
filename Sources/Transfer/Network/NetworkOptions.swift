internal import Glibc

/// How an engine reaches servers, and what it presents to them on its own account, whatever the request.
///
/// All paths are absolute.
package struct NetworkOptions: Sendable {
  /// Logins by host (netrc(5)): looked up for each hop that has none from its URL; nil for none.
  package var netrc: String?
  /// The cookies that requests send.
  package var cookies = CookieUse.none
  /// The only family of addresses to connect to.
  package var addressFamily = FetchRequest.AddressFamily.any
  /// A certificate, and its private key, unless that is in the same file, for servers that ask for one. PEM.
  package var certificate, certificateKey: String?
  /// Certificates to trust instead of the system's, PEM (CURLOPT_CAINFO(3)); also those of a proxy.
  package var authorities: String?
  /// The proxies of URLs.
  package let proxies: ProxyRules

  /// Which cookies requests send.
  package enum CookieUse: Sendable, Equatable {
    /// No cookies but those of a request's own header.
    case none
    /// Those that servers set while a group of fetches runs, and those in a file of Netscape's format.
    case session(file: String?)
  }

  /// - Parameter proxy: the proxy for all schemes; nil for those that the environment names, which is read once.
  package init(proxy: String? = nil) {
    proxies = ProxyRules(instead: proxy.map { Proxy($0) }) { name in getenv(name).map { String(cString: $0) } }
  }

  /// What keeps a fetch from presenting what it should; nil for nothing. libcurl goes on without, and the server's
  /// refusal would count as final.
  var problem: TransferFailure? {
    var files = [netrc]
    if case .session(let file) = cookies { files.append(file) }
    for file in files.compactMap(\.self) where access(file, R_OK) != 0 {
      let reason = String(cString: strerror(errno))
      return TransferFailure(code: .local, message: "cannot read \(file): \(reason)")
    }
    return nil
  }
}
