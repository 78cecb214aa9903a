/// What a server answered, in terms that HTTP, FTP and SFTP share. Known before the first byte of the body.
package struct Response: Sendable {
  /// What the body is.
  package enum Content: Sendable, Equatable {
    /// The file from its first byte to its last: HTTP's 200, FTP without REST.
    case whole
    /// The bytes `first` to `last`, itself included, of `total`; nil if the server did not say: HTTP's 206.
    case range(first: UInt64, last: UInt64, total: UInt64?)
    /// A part of the file, but the response does not say which: why.
    case unknownRange(String)
    /// Nothing, as the file has no bytes from the offset asked for on. `size` of the file; nil if the server did not
    /// say or contradicted itself: HTTP's 416.
    case nothingThere(size: UInt64?)
    /// Nothing, as the server does not send the file.
    case refused(Refusal)
  }

  /// Why a response has no bytes of the file.
  package enum Refusal: Sendable, Equatable {
    /// The status, and the schemes by which the server takes a login, if it says so.
    case http(status: Int, logins: [String])
    /// FTP and SFTP refused the login.
    case login
    /// FTP and SFTP: the login may not read the file.
    case access
    /// FTP and SFTP: there is no such file.
    case noSuchFile
    /// FTP: the server could not send the file.
    case unavailable
  }

  /// How the end of the body is found, and so what a body that was cut looks like.
  package enum Ending: Sendable, Equatable {
    /// By a length or a last chunk: a body that was cut is an error.
    case announced
    /// By the end of the connection: a body that was cut may look whole.
    case connection
    /// By the end of an HTTP/2 stream: a body that was cut may look whole.
    case stream
    /// By the server's reply that all is sent (FTP's 226); the length is not known before.
    case reply
  }

  /// The URL that answered, after all redirects.
  package let url: URLParts
  /// What the body is.
  package let content: Content
  /// Bytes of the body; nil if the server did not say.
  package var bodyLength: UInt64?
  /// What shows the end of the body.
  package var ending = Ending.announced
  /// The content codings other than `identity`, in a list with commas: the body is not the file itself, unless the file
  /// is stored in this form.
  package var coding: String?
  /// The body is delivered without its ``coding``, so its length is not known.
  package var isDecoded = false
  /// As sent; nil if there is none, several, or one with other bytes than printable ASCII.
  package var etag: String?
  /// Last-Modified as sent.
  package var lastModified: String?
  /// ``lastModified`` is a strong validator (RFC 9110, 8.8.2.2).
  package var isLastModifiedStrong = false
  /// Seconds that the server asks to wait before the next request (RFC 9110, 10.2.3), whatever its status.
  package var retryAfter: Int?
  /// The media type in lower case, without its parameters.
  package var mediaType: String?
  /// What the server says of the type is not one type, so ``mediaType`` is nil.
  package var isMediaTypeUnclear = false
  /// Digests of the whole file, at most one by each algorithm.
  package var digests: [StatedDigest] = []

  /// The file name that the server proposes (Content-Disposition): a stranger's text, for a person who asks for it. No
  /// download ever uses it.
  package var proposedName: String?

  /// - Parameter url: the one that answered, after all redirects.
  package init(url: URLParts, content: Content) {
    self.url = url
    self.content = content
  }

  /// Whether the body is the file or a part of it.
  var isOfFile: Bool {
    switch content {
    case .whole, .range: true
    case .unknownRange, .nothingThere, .refused: false
    }
  }

  /// Whether the body is the whole file.
  var hasWhole: Bool {
    switch content {
    case .whole: true
    case .range(let first, let last, let total): first == 0 && last + 1 == total
    case .unknownRange, .nothingThere, .refused: false
    }
  }

  /// Where the body ends in the file, as the server announces it; nil if it does not.
  package var statedEnd: UInt64? {
    switch content {
    case .whole: bodyLength
    case .range(_, let last, _): last + 1
    case .unknownRange, .nothingThere, .refused: nil
    }
  }
}
