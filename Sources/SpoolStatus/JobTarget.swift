package import Spool

/// What a job shares with others: its server, and its output. By its text alone, and only as exact as `status` needs
/// it: the worker parses URLs with libcurl.
package struct JobTarget: Sendable, Equatable {
  /// Scheme, host and port of the first URL, in lower case; nil if there is none.
  package let server: String?
  /// The path of the payload, with the output root if the job names one; nil if it has none.
  package let output: String?
  /// The size that the job declares, in bytes.
  package let size: UInt64?

  /// The target of a job that asks for this.
  package init(_ request: JobRequest) {
    size = request.expected.size
    let url = (request.urls.first?.text).map { $0.prefix { $0 != "?" && $0 != "#" } }
    let scheme = url?.firstRange(of: "://")?.upperBound
    if let url, let scheme {
      let authority = url[scheme...].prefix { $0 != "/" }
      let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
      server = (url[..<scheme] + host).lowercased()
    } else {
      server = nil
    }
    let name = scheme.flatMap { url?[$0...] }.flatMap { $0.lastIndex(of: "/").map($0.index(after:)) }
    let last = name.flatMap { url?[$0...] }.map { String($0) }
    output = request.outputText(named: last == "" ? nil : last).map { output in
      (request.root.map { "\($0.text):" } ?? "") + output
    }
  }

  /// The server's host, safe for a terminal.
  var host: String? {
    guard let server else { return nil }
    return escaped(server.firstRange(of: "://").map { server[$0.upperBound...] } ?? server[...])
  }
}
