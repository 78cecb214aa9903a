internal import Glibc

/// How an engine reaches servers, and what it presents to them on its own account, whatever the request.
///
/// All paths are absolute.
package struct NetworkOptions: Sendable {
  /// Logins by host (netrc(5)): looked up for each hop that has none from its URL; nil for none.
  package var netrc: String?
  package var cookies = CookieUse.none
  package var addressFamily = FetchRequest.AddressFamily.any
  /// A certificate, and its private key, unless that is in the same file, for servers that ask for one. PEM.
  package var certificate, certificateKey: String?
  /// Certificates to trust instead of the system's, PEM (CURLOPT_CAINFO(3)); also those of a proxy.
  package var authorities: String?
  /// Whether no connection is made to a ``PrivateAddress``. What a proxy connects to is the proxy's own.
  package var refusesPrivate = false
  package let proxies: ProxyRules

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
    return files.compactMap(\.self).first { access($0, R_OK) != 0 }.map { .unreadable($0) }
  }
}

extension TransferFailure {
  /// For errno(3).
  static func unreadable(_ file: String) -> TransferFailure {
    TransferFailure(code: .local, message: "cannot read \(file): \(String(cString: strerror(errno)))")
  }
}

/// Whether a netrc file may have a login for a host, by its words: libcurl reads it, and does not say what it found.
/// - Parameter host: as in ``URLParts``.
func mayHaveLogin(for host: String, netrc path: String) -> Bool {
  func words(_ bytes: some Collection<UInt8>) -> [[UInt8]] {
    bytes.split { $0 <= 0x20 || "\"[]".utf8.contains($0) }.map { $0.map(lowercasedASCII) }
  }
  let names = words("default \(host)".utf8)
  return contents(of: path).map { words($0).contains { names.contains($0) } } ?? true
}

/// - Returns: nil for a file that cannot be read.
func contents(of path: String) -> [UInt8]? {
  guard let file = fopen(path, "re") else { return nil }
  defer { fclose(file) }
  var text: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    if count == 0 { return ferror(file) == 0 ? text : nil }
    text += buffer[..<count]
  }
}

struct Proxy: Sendable, Equatable {
  /// For libcurl (CURLOPT_PROXY(3)). Holds user name and password: not for showing.
  let text: String
  /// In lower case; `http` where the variable names none.
  let scheme: String
  /// `HOST:PORT`: what may be shown.
  let name: String
  let hasCredentials: Bool

  init(_ text: String) {
    self.text = text
    let bytes = text.utf8
    let mark = bytes.firstRange(of: "://".utf8)
    scheme = mark.map { lowercasedASCII(text[..<$0.lowerBound]) } ?? "http"
    let rest = bytes[(mark?.upperBound ?? bytes.startIndex)...]
    let authority = rest.prefix { !"/?#".utf8.contains($0) }
    let at = UInt8(ascii: "@")
    let login = authority.lastIndex(of: at)
    let place = login.map { authority[$0...].dropFirst() } ?? authority
    hasCredentials = login != nil
    let isAddress = place.first == UInt8(ascii: "[")
    let host = place.prefix { $0 != UInt8(ascii: isAddress ? "]" : ":") }
    let port = place[host.endIndex...].drop { isAddress && $0 == UInt8(ascii: "]") }
    let isClear = (port.isEmpty || decimal(port.dropFirst()) != nil) && (isAddress || !host.contains(UInt8(ascii: "%")))
    // Where the host is missing, or the password has a slash or is not encoded, what is left may be the password.
    if place.isEmpty || rest[authority.endIndex...].contains(at) || !isClear {
      name = "(malformed)"
    } else {
      name = printable("\(Substring(place))" + (port.isEmpty ? ":\(scheme == "https" ? 443 : 1080)" : ""))
    }
  }

  /// It answers in HTTP itself where there is no tunnel.
  var isHTTP: Bool { scheme == "http" || scheme == "https" }
}

/// Which URLs are fetched through which proxy, by the rules of curl(1), ENVIRONMENT. Decided here and not by libcurl,
/// which does not report its decision before 8.7: a failure has to name the proxy that it is about.
package struct ProxyRules: Sendable {
  private var proxies: [Scheme: Proxy] = [:]
  private let exceptions: String

  init(instead: Proxy? = nil, variable: (String) -> String?) {
    func value(_ names: [String]) -> String? { names.lazy.compactMap(variable).first { !$0.isEmpty } }
    let fallback = value(["all_proxy", "ALL_PROXY"])
    for scheme in Scheme.allCases {
      proxies[scheme] = instead ?? (value(scheme.proxyVariables) ?? fallback).map { Proxy($0) }
    }
    exceptions = value(["no_proxy", "NO_PROXY"]) ?? ""
  }

  /// The proxy for a URL; nil for a direct connection.
  func proxy(for url: URLParts) -> Proxy? {
    guard let proxy = proxies[url.scheme], exceptions != "*" else { return nil }
    let names = exceptions.utf8.split { ", \t".utf8.contains($0) }
    return names.contains { Self.covers($0.map(lowercasedASCII), url) } ? nil : proxy
  }

  /// `HOST:PORT` of the proxy for a URL; nil for a direct connection.
  package func name(for url: URLParts) -> String? { proxy(for: url)?.name }

  /// Whether `exception` is the URL's host, a domain above it, or a network with it, such as `192.0.2.0/24`. Other
  /// programs take more than curl(1): patterns, such as `*.corp` and `10.*`, a port, and brackets around an address.
  private static func covers(_ exception: [UInt8], _ url: URLParts) -> Bool {
    let (dot, star) = (UInt8(ascii: "."), UInt8(ascii: "*"))
    func withoutDot(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> { text.last == dot ? text.dropLast() : text }
    func withoutBrackets(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
      text.first == UInt8(ascii: "[") && text.last == UInt8(ascii: "]") ? text.dropFirst().dropLast() : text
    }
    let name = withoutDot(Array(url.host.utf8)[...])
    let bare = withoutBrackets(name)
    let port = Array(":\(url.port)".utf8)
    let hasPort = Array(exception.suffix(port.count)) == port && Self.address(exception[...]) == nil
    var exception = withoutBrackets(hasPort ? exception.dropLast(port.count) : exception[...])
    if exception.starts(with: [star, dot]) { exception.removeFirst() }
    if exception.contains(star) {
      return fnmatch(String(decoding: exception, as: UTF8.self), String(decoding: bare, as: UTF8.self), 0) == 0
    }
    if let address = Self.address(bare) {
      return AddressBlock(String(decoding: exception, as: UTF8.self))?.contains(address) ?? false
    }
    let domain = withoutDot(exception.first == dot ? exception.dropFirst() : exception)
    return !domain.isEmpty && (name == domain || Array(name.suffix(domain.count + 1)) == [dot] + domain)
  }

  /// The bytes of an IP address; nil for a name.
  private static func address(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    AddressBlock.address(String(decoding: text, as: UTF8.self))
  }
}
