/// The keys of a job (spool.5, JOB FORMAT); nil or empty if not given. ``JobKey/all`` defines how each value is read
/// and written.
package struct JobRequest: Sendable, Equatable {
  /// A value with the number of its line, for records.
  package struct Line: Sendable, Equatable {
    /// The URL as the job has it, perhaps with a user name and a password.
    package let text: String
    /// The number of its line in the job, from 1.
    package let number: Int

    /// - Parameter number: of the line in the job, from 1.
    package init(text: String, number: Int) {
      self.text = text
      self.number = number
    }

    package static func == (one: Line, other: Line) -> Bool {
      one.text.exact == other.text.exact && one.number == other.number
    }

    /// Of an ``JobRequest/output``: whether it is the directory for the payload.
    package var isDirectory: Bool { OutputPath.isDirectory(text) }
  }

  /// Mirrors of one file, in order of preference.
  package var urls: [Line] = []
  /// What the hook `resolve` is asked with for the links of an attempt; nil if it is not asked.
  package var resolve: Line?
  /// Relative to the output root. A slash at its end means that it is a directory: see ``outputText(named:)``.
  package var output: Line?
  /// The name of the output root in the spool's `roots`; nil for the worker's.
  package var root: Line?
  /// The payload's permissions; nil if only its owner may read it.
  package var mode: PayloadMode?
  /// The size and the digests that the payload must have.
  package var expected = Expectation()
  /// The media types that the payload may have; nil for any.
  package var types: MediaTypes?
  /// What to do with a body that the server encodes unasked; nil to refuse it, unless size or digests show that it is
  /// what the job declares.
  package var encoded: EncodedBody?
  /// Digests to compute although the job declares none.
  package var digests: Set<DigestAlgorithm>?
  /// Header fields to send.
  package var headers: [HeaderLine] = []
  /// The value of User-Agent; nil for the worker's own.
  package var userAgent: String?
  /// The URL of the page that leads to the file.
  package var referer: String?
  /// Whether the payload may replace a file.
  package var overwrite: Bool?
  /// The number of attempts after which the job is given up.
  package var attempts: Int?
  /// The time at which the job is given up.
  package var expires: Timestamp?
  /// When a transfer that stalls is given up.
  package var timeout: Timeout?
  /// The largest payload to accept, in bytes.
  package var maxSize: UInt64?
  /// The maximum rate of the transfer.
  package var limitRate: RateRules?
  /// The rate below which a transfer counts as stalled.
  package var minRate: MinimumRate?
  /// The number of connections for one transfer.
  package var connections: Int?
  /// Of `defaults` alone, and not inherited.
  package var network = NetworkKeys()
  /// Which jobs start first; nil for that of `defaults`, or normal.
  package var priority: Priority?
  /// Of standing orders alone.
  package var standing = StandingOrder()
  /// Whether somebody else has chosen a URL that does not encrypt: see ``JobText/offeredLine``.
  package internal(set) var isOffered = false

  /// A job without any key: not valid, as it has no URL.
  package init() {}

  /// For jobs without `attempts:`.
  package static let defaultAttempts = 12
  /// The values of `attempts:`.
  package static let attemptRange = 1...1000
  /// The values of `connections:`.
  package static let connectionRange = 1...32
}

extension JobRequest {
  /// The bytes that the mirrors of one job may take: half of what its text may have.
  private static let mirrorsLength = JobText.maximumRequest / 2

  /// The first of these URLs, as many as one job has room for, but at least one.
  package static func mirrors(_ urls: [String]) -> [String] {
    var room = mirrorsLength
    let count = urls.prefix { url in
      // With `url: ` and the newline.
      room -= url.utf8.count + 6
      return room >= 0
    }.count
    return Array(urls.prefix(max(1, count)))
  }

  /// The path of the payload below the output root; nil where neither the job nor the URL names a file.
  /// - Parameter name: the last part of the first URL; nil where that is no file name.
  package func outputText(named name: String?) -> String? {
    guard let text = output?.text else { return name }
    return OutputPath.isDirectory(text) ? name.map { text + $0 } : text
  }

  /// Asks for the payload at this path. A line has no blanks around its value: a name with blanks there, which comes
  /// from the URL, is left to the URL.
  /// - Parameter number: of the line that says so.
  package mutating func setOutput(_ path: String, number: Int = 0) {
    let name = path.split(at: "/", omittingEmptySubsequences: false).last ?? ""
    let text = trimmed(path[...]).exact == path.exact ? path[...] : path[..<name.startIndex]
    output = text.isEmpty ? nil : Line(text: String(text), number: number)
  }

  /// The digests to compute beside CRC-32: those that are declared, and those that are wanted for the receipt.
  package var computedDigests: Set<DigestAlgorithm> {
    expected.digests.algorithms.union(digests ?? []).union([.crc32])
  }

  /// Whether the payload may have come as this type.
  /// - Parameter type: in lower case, without parameters; nil where the server named none.
  package func allows(type: String?) -> Bool {
    guard let types, let type else { return true }
    return types.contain(type)
  }

  /// Seconds without a byte after which a transfer counts as stalled.
  package var idleTimeout: Int { timeout?.idle ?? 60 }

  /// Seconds that one request may take; each of several connections sends requests of its own.
  package var totalTimeout: Int { timeout?.total ?? 7 * 86_400 }

  /// The rate below which a transfer counts as stalled; nil where any rate will do. The default grants a server as much
  /// silence as the idle timeout does.
  package var effectiveMinimumRate: MinimumRate? {
    let standard = MinimumRate.default
    let rate =
      minRate
      ?? MinimumRate(bytesPerSecond: standard.bytesPerSecond, seconds: max(standard.seconds, idleTimeout))
    return rate.bytesPerSecond > 0 ? rate : nil
  }

  /// The `Name: value` lines for a request to `host`. The field of a line without a value is not sent.
  /// - Parameters:
  ///   - host: in lower case.
  ///   - isEncrypted: whether nobody in between can read them.
  package func headers(for host: String, isEncrypted: Bool) -> [String] {
    (isOffered && !isEncrypted ? headers.filter { $0.host == nil } : headers).lines(for: host)
  }
}

/// What to do with a body that has a Content-Encoding, although none was asked for.
package enum EncodedBody: String, Sendable { case keep, decode }

/// How long a transfer may take.
package struct Timeout: Sendable, Equatable {
  /// Seconds without a byte.
  package let idle: Int
  /// Seconds for one request in all; nil for the default.
  package let total: Int?

  /// Both in seconds.
  package init(idle: Int, total: Int? = nil) {
    self.idle = idle
    self.total = total
  }
}

/// The rate that a server must reach; below it, the transfer counts as stalled.
package struct MinimumRate: Sendable, Equatable {
  /// Bytes per second on average; 0 for no minimum.
  package let bytesPerSecond: UInt64
  /// Seconds over which the average is taken.
  package let seconds: Int

  /// For jobs without `min-rate:`.
  package static let `default` = MinimumRate(bytesPerSecond: 1024, seconds: 300)
}
