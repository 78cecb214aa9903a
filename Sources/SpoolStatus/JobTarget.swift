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
    let url = request.urls.first.map { URLText($0.text) }.flatMap { $0.scheme.isEmpty ? nil : $0 }
    server = url.map { "\($0.scheme)\($0.host)".lowercasedASCII }
    let last = url?.lastName.map { String($0) }
    output = request.outputText(named: last).map { output in
      (request.root.map { "\($0.text):" } ?? "") + output
    }
  }

  /// The server's host, safe for a terminal.
  var host: String? { server.map { escaped(URLText($0).host) } }
}
