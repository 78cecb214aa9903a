extension JobKey {
  /// The keys of `defaults` alone.
  static let network = [
    JobKey(
      "netrc", \.network.netrc, .file, valueName: "yes|path", scope: .defaults,
      help: "Use the logins in ~/.netrc, or in another file."),
    JobKey(
      "cookies", \.network.cookies, .file, valueName: "yes|path", scope: .defaults,
      help: "Send the cookies that servers set during an attempt, and those in a file."),
    JobKey("proxy", \.network.proxy, .proxyURL, valueName: "url", scope: .defaults, help: "Proxy for all transfers."),
    JobKey("ip", \.network.ipVersion, .ipVersion, valueName: "4|6", scope: .defaults, help: "Version of IP to use."),
    JobKey(
      "cert", \.network.certificate, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate to show to servers."),
    JobKey(
      "key", \.network.certificateKey, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate's private key."),
    JobKey(
      "cacert", \.network.authorities, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate authorities to trust."),
  ]
}

extension ValueGrammar<String> {
  /// With a port, because the port of a proxy has no default that all programs share.
  static let proxyURL = ValueGrammar(
    "SCHEME://HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT with the scheme http, https, socks5 or socks5h, and "
      + "characters such as @ and / of the password as %40 and %2F",
    read: { isProxy($0) ? $0 : nil }, write: { $0 })

  private static func isProxy(_ text: String) -> Bool {
    guard let mark = text.utf8.firstRange(of: "://".utf8),
      ["http", "https", "socks5", "socks5h"].contains(text[..<mark.lowerBound].lowercasedASCII)
    else { return false }
    var rest = text[mark.upperBound...]
    if rest.ends(with: "/") { rest = rest.dropLast() }
    guard rest.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !"/?#\\".utf8.contains($0) }) else { return false }
    let parts = rest.split(at: "@", omittingEmptySubsequences: false)
    guard let place = parts.last, parts.count <= 2, let colon = place.utf8.lastIndex(of: UInt8(ascii: ":")) else {
      return false
    }
    let (host, port) = (place[..<colon], decimal(place[colon...].dropFirstBytes()) ?? 0)
    let isAddress = host.begins(with: "[") && host.ends(with: "]") && host.count > 2
    let isName = !host.isEmpty && host.prefix(before: ":[]").endIndex == host.endIndex
    return (isName || isAddress) && (1...65_535).contains(port)
  }
}

extension ValueGrammar<NetworkKeys.File> {
  static let file = ValueGrammar(
    read: { NetworkKeys.File($0.text, line: $0.line) }, write: { WrittenValue(text: $0.text) })
}

extension ValueGrammar<NetworkKeys.IPVersion> {
  static let ipVersion = ValueGrammar(
    "4 or 6", read: { NetworkKeys.IPVersion(rawValue: $0) }, write: { $0.rawValue })
}
