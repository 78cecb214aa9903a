/// How the worker reaches servers, and what is its own to show them: the keys that `defaults` alone may have (spool.5,
/// JOB FORMAT). A job cannot have them, so that a stranger's job cannot spend what is the worker's.
package struct NetworkKeys: Sendable, Equatable {
  /// A version of the Internet Protocol.
  package enum IPVersion: String, Sendable { case four = "4", six = "6" }

  /// A file as `defaults` names it.
  package struct File: Sendable, Equatable {
    /// Its path, or a word that stands for one.
    package let text: String
    /// The number of the line, from 1; nil if it is not known.
    package let line: Int?

    /// A file that a line names.
    package init(_ text: String, line: Int? = nil) { (self.text, self.line) = (text, line) }
  }

  /// `yes`, `no`, or the path of a file with logins (netrc(5)).
  package var netrc: File?
  /// `yes`, `no`, or the path of a file with cookies.
  package var cookies: File?
  /// The URL of a proxy for all schemes, perhaps with user name and password: not for showing.
  package var proxy: String?
  /// The only version of IP to use.
  package var ipVersion: IPVersion?
  /// The path of the worker's certificate, and that of its private key.
  package var certificate, certificateKey: File?
  /// The path of the certificate authorities to trust.
  package var authorities: File?

  /// None of them.
  package init() {}
}
