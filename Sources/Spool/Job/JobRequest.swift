/// The keys of a job (spool.5, JOB FORMAT); nil or empty if not given. ``JobKey/all`` defines how each value is read
/// and written.
package struct JobRequest: Sendable, Equatable {
  /// A value with the number of its line, for records.
  package struct Line: Sendable, Equatable {
    /// The URL as the job has it, perhaps with a user name and a password.
    package let text: String
    package let number: Int

    /// - Parameter number: of the line in the job, from 1.
    package init(text: String, number: Int) { (self.text, self.number) = (text, number) }

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
  /// The size, the digests and the pieces that the payload must have.
  package var expected = Expectation()
  package var types: MediaTypes?
  /// What to do with a body that the server encodes unasked; nil to refuse it, unless size or digests show that it is
  /// what the job declares.
  package var encoded: EncodedBody?
  /// The URL of the payload's signature; of a standing order, of its list's, or ``inlineSignature``.
  package var signature: Line?
  /// Who has signed the list that the job is from: see ``JobLines/signedStart``.
  package var signedBy: String?
  /// Digests to compute although the job declares none.
  package var digests: Set<DigestAlgorithm>?
  package var headers: [HeaderLine] = []
  /// The value of User-Agent; nil for the worker's own.
  package var userAgent: String?
  /// The URL of the page that leads to the file.
  package var referer: String?
  package var overwrite: Bool?
  /// The number of attempts after which the job is given up.
  package var attempts: Int?
  package var expires: Timestamp?
  /// Seconds for which a server may answer nobody before the job is given up.
  package var patience: Int?
  package var timeout: Timeout?
  /// The largest payload to accept, in bytes.
  package var maxSize: UInt64?
  package var limitRate: RateRules?
  /// The rate below which a transfer counts as stalled.
  package var minRate: MinimumRate?
  package var connections: Int?
  /// Of `defaults` alone, and not inherited.
  package var network = NetworkKeys()
  /// Of `defaults` alone, and not inherited.
  package var servers = ServerKeys()
  /// Whether nothing unsigned is published. Of `defaults` alone, and not inherited.
  package var requiresSignature: Bool?
  /// Which jobs start first; nil for that of `defaults`, or normal.
  package var priority: Priority?
  /// Of standing orders alone.
  package var standing = StandingOrder()
  /// Whether somebody else has chosen a URL that does not encrypt: see ``JobText/offeredLine``.
  package internal(set) var isOffered = false

  /// A job without any key: not valid, as it has no URL.
  package init() {}

  static let none = JobRequest()
  package static let defaultPatience = 5 * 86_400
  package static let defaultAttempts = 12
  package static let attemptRange = 1...1000
  package static let connectionRange = 1...32
}

extension JobRequest {
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
  package var computedDigests: Set<DigestAlgorithm> { expected.digests.algorithms.union(digests ?? []).union([.crc32]) }

  /// In place of a URL: the list has its signature in itself.
  package static let inlineSignature = "inline"

  /// Whether the URL of its signature, or a signed list with a digest that nobody can forge, vouches for the payload.
  package var isSigned: Bool {
    let proving = expected.digests.algorithms.union((expected.pieces?.algorithm).map { [$0] } ?? [])
    return signature != nil || signedBy != nil && proving.contains(where: \.isStrong)
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
      minRate ?? MinimumRate(bytesPerSecond: standard.bytesPerSecond, seconds: max(standard.seconds, idleTimeout))
    return rate.bytesPerSecond > 0 ? rate : nil
  }

  /// The `Name: value` lines for a request to `host`. The field of a line without a value is not sent.
  /// - Parameter host: in lower case.
  /// - Parameter isEncrypted: whether nobody in between can read them.
  package func headers(for host: String, isEncrypted: Bool) -> [String] {
    (isOffered && !isEncrypted ? headers.filter { $0.host == nil } : headers).lines(for: host)
  }
}

/// What to do with a body that has a Content-Encoding, although none was asked for.
package enum EncodedBody: String, Sendable { case keep, decode }

package struct Timeout: Sendable, Equatable {
  /// Seconds without a byte.
  package let idle: Int
  /// Seconds for one request in all; nil for the default.
  package let total: Int?

  package init(idle: Int, total: Int? = nil) { (self.idle, self.total) = (idle, total) }
}

/// The rate that a server must reach; below it, the transfer counts as stalled.
package struct MinimumRate: Sendable, Equatable {
  /// Bytes per second on average; 0 for no minimum.
  package let bytesPerSecond: UInt64
  package let seconds: Int

  package static let `default` = MinimumRate(bytesPerSecond: 1024, seconds: 300)
}

/// How the worker reaches servers, and what is its own to show them: the keys that `defaults` alone may have (spool.5,
/// JOB FORMAT). A job cannot have them, so that a stranger's job cannot spend what is the worker's.
package struct NetworkKeys: Sendable, Equatable {
  package enum IPVersion: String, Sendable { case four = "4", six = "6" }

  package struct File: Sendable, Equatable {
    /// Its path, or a word that stands for one.
    package let text: String
    /// The number of the line, from 1; nil if it is not known.
    package let line: Int?

    package init(_ text: String, line: Int? = nil) { (self.text, self.line) = (text, line) }
  }

  /// `yes`, `no`, or the path of a file with logins (netrc(5)).
  package var netrc: File?
  /// `yes`, `no`, or the path of a file with cookies.
  package var cookies: File?
  /// The URL of a proxy for all schemes, perhaps with user name and password: not for showing.
  package var proxy: String?
  package var ipVersion: IPVersion?
  /// The path of the worker's certificate, and that of its private key.
  package var certificate, certificateKey: File?
  /// The path of the certificate authorities to trust.
  package var authorities: File?
  /// Whether servers may have private addresses; nil for yes.
  package var allowsPrivate: Bool?

  package init() {}

  /// These, with what a command line says in their place.
  package func replaced(by given: Self) -> Self {
    var keys = self
    (keys.netrc, keys.proxy) = (given.netrc ?? netrc, given.proxy ?? proxy)
    return keys
  }
}

/// How much is asked of servers: keys that `defaults` alone may have.
package struct ServerKeys: Sendable, Equatable {
  package var perHost: [ServerRule<Int>] = []
  package var pace: [ServerRule<RequestPace>] = []

  package init() {}
}

/// A value for one host, or for all others.
package struct ServerRule<Value: Sendable & Equatable>: Sendable, Equatable {
  /// In lower case; nil for all that no other rule names.
  package let host: String?
  package let value: Value
}

extension Array {
  /// What these rules say of a host. The last one counts, as with other programs' lists of settings.
  package func value<Value>(for host: String) -> Value? where Element == ServerRule<Value> {
    (last { $0.host == host } ?? last { $0.host == nil })?.value
  }
}

extension [ServerRule<Int>] {
  /// The most transfers at once from `server` (scheme, host and port); nil if these rules say nothing. What they say of
  /// one host may be more than `limit`.
  package func most(from server: String, limit: Int) -> Int? {
    if isEmpty { return nil }
    let host = hostName(of: server)
    return last { $0.host == host }?.value ?? value(for: host).map { Swift.min($0, limit) }
  }
}

/// The host of a server that is written as scheme, host and perhaps port.
package func hostName(of server: String) -> String {
  let bytes = server.utf8
  let start = bytes.firstRange(of: "://".utf8)?.upperBound ?? bytes.startIndex
  let end = bytes.lastIndex(of: UInt8(ascii: ":")).flatMap { colon in
    colon > start && !bytes[colon...].contains(UInt8(ascii: "]")) ? colon : nil
  }
  return String(server[start..<(end ?? bytes.endIndex)])
}

package struct RequestPace: Sendable, Equatable {
  /// As it was written: `90/min`.
  let text: String
  /// Between two requests, rounded up.
  package let milliseconds: Int64

  private static let units: [String: Int64] = [
    "s": 1000, "sec": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000,
  ]

  /// - Returns: nil unless the text is a number and a unit of time, such as `90/min`.
  package init?(_ text: String) {
    let parts = text.split(at: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = decimal(parts[0]).flatMap({ Int64(exactly: $0) }), (1...1000).contains(count),
      let unit = Self.units[String(parts[1])]
    else { return nil }
    self.text = text
    milliseconds = (unit + count - 1) / count
  }
}

/// The keys that make a job's file a standing order (spool.5, SUBSCRIPTIONS). ``JobKey/ofOrders`` defines how each is
/// read and written.
package struct StandingOrder: Sendable, Equatable {
  /// Seconds from one check of the list to the next. An order without it is none.
  package var every: Int?
  /// What the list is; nil where it is told by its looks.
  package var entries: EntryFormat?
  /// How many of the entries that are there at the first check count as new.
  package var first: Int?
  /// A pattern for the names of the files to fetch (glob(7)); nil for all.
  package var match: String?
  /// How many versions or episodes stay; nil for all.
  package var keep: Int?

  package init() {}

  package static let defaultFirst = 1
  static let all = Int.max
}

/// Which waiting jobs start before others (spool.5, PRIORITY), the first to start first.
package enum Priority: String, CaseIterable, Sendable, Comparable {
  case high, normal, low

  package static func < (left: Priority, right: Priority) -> Bool { left.place < right.place }

  /// Its place among all, from 0.
  package var place: Int {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

extension Directory { init(forDropsOf priority: Priority?) { self = priority == .high ? .urgent : .new } }

/// The permissions of a payload (chmod(2)). Its owner may always read and write it, because a later worker may have to
/// continue with it; others may never write to it.
package struct PayloadMode: Sendable, Equatable {
  package let bits: UInt32

  private static let ofOwner: UInt32 = 0o600
  private static let most: UInt32 = 0o775

  /// - Parameter text: three octal digits, perhaps with a 0 before them.
  /// - Returns: nil for anything else, and for permissions that it does not allow.
  package init?(_ text: String) {
    guard (3...4).contains(text.utf8.count), text.utf8.count == 3 || text.begins(with: "0"),
      text.utf8.allSatisfy({ (0x30...0x37).contains($0) }), let bits = UInt32(text, radix: 8),
      bits & Self.ofOwner == Self.ofOwner, bits & ~Self.most == 0
    else { return nil }
    self.bits = bits
  }

  /// What a file gets that a program creates as usual.
  /// - Parameter mask: see umask(2).
  package init(umask mask: UInt32) { bits = 0o666 & Self.most & ~mask | Self.ofOwner }

  /// The same for the directories that are made for the payload: whoever may read it may search them.
  package var ofDirectories: UInt32 { bits | (bits & 0o444) >> 2 }

  package var text: String { String(bits, radix: 8) }
}

/// A header field to send, and the host to send it to.
package struct HeaderLine: Sendable, Equatable {
  /// The only host to send it to, in lower case; nil for the host of any URL.
  package let host: String?
  /// `Name: value`. Without a value it says that the field is not sent.
  package let text: String
  /// In lower case: fields are the same whatever their case (RFC 9110 section 5.1).
  let name: String

  /// The fields that only the worker may send, in lower case. They decide how a download resumes and where a message
  /// ends, so that another value would corrupt a payload unnoticed.
  package static let reserved: Set<String> = [
    "accept-encoding", "connection", "content-length", "expect", "host", "if-range", "range", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  /// Checks a field line by RFC 9110 section 5: a token, a colon, a value. Control characters are refused for every
  /// line of a job (``JobText``).
  /// - Parameter host: as written behind the `@` of `header@HOST`.
  /// - Throws: what is wrong. It never quotes the value, which may be a secret.
  init(_ text: String, host: String? = nil) throws(InvalidValue) {
    guard let colon = text.utf8.firstIndex(of: 0x3A), colon != text.utf8.startIndex else {
      throw InvalidValue("needs a name, a colon and a value, such as Accept: text/plain")
    }
    let name = text[..<colon]
    guard name.utf8.allSatisfy({ isAlphanumeric($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }) else {
      throw InvalidValue("the name before the colon contains a character that HTTP forbids")
    }
    let field = name.lowercasedASCII
    if Self.reserved.contains(field) { throw InvalidValue("\(field) is set by the worker") }
    if let host {
      try checkHost(host, "header")
      // The line was `header@HOST:PORT: …`.
      if name.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
        throw InvalidValue("must name a host without a port: the field is sent to all ports of the host")
      }
    }
    self.host = host?.lowercasedASCII
    self.text = text
    self.name = field
  }

  package static func == (one: HeaderLine, other: HeaderLine) -> Bool {
    one.host == other.host && one.text.exact == other.text.exact
  }

  /// The same field for this host alone; nil if the host is an IPv6 address, or if the field is for another.
  package func bound(to host: String) -> HeaderLine? {
    if let own = self.host { return own == host ? self : nil }
    do throws(InvalidValue) { return try HeaderLine(text, host: host) } catch { return nil }
  }
}

/// - Parameter host: as written behind the `@` of `key@HOST`.
func checkHost(_ host: String, _ key: String) throws(InvalidValue) {
  guard !host.isEmpty, host.utf8.allSatisfy({ isAlphanumeric($0) || "-._".utf8.contains($0) }) else {
    throw InvalidValue("needs an ASCII host name after the @, without a port, such as \(key)@mirror.example")
  }
}

extension [HeaderLine] {
  /// These lines of a job behind those of `defaults` that they do not replace. A line replaces those of its name for
  /// the same host, and a line for all hosts replaces all of its name.
  func added(to defaults: [HeaderLine]) -> [HeaderLine] {
    defaults.filter { old in !contains { $0.name == old.name && ($0.host == nil || $0.host == old.host) } } + self
  }

  /// The lines for a request to `host`, in lower case. One that names the host replaces those of its name that name
  /// none.
  func lines(for host: String) -> [String] {
    let special = Set(filter { $0.host == host }.map(\.name))
    return filter { $0.host == host || ($0.host == nil && !special.contains($0.name)) }.map(\.text)
  }
}

/// The rate limit of a transfer by its priority and the time of day: the first clause that applies counts
/// (spool.5, RATE LIMITS). If none applies, there is no limit.
package struct RateRules: Sendable, Equatable {
  /// `500k low 08:00-23:00`
  package struct Clause: Sendable, Equatable {
    /// nil for no limit.
    package var bytesPerSecond: UInt64?
    package var priority: Priority?
    package var hours: DayHours?
  }

  /// In the order of the text: the first that applies counts.
  package let clauses: [Clause]

  package init(bytesPerSecond: UInt64) { clauses = [Clause(bytesPerSecond: bytesPerSecond)] }

  /// The number of the clause that applies.
  /// - Parameter minute: of the day, by the local clock.
  package func clause(for priority: Priority, at minute: Int) -> Int? {
    clauses.firstIndex { clause in (clause.priority ?? priority) == priority && clause.hours?.contains(minute) ?? true }
  }

  package func bytesPerSecond(for priority: Priority, at minute: Int) -> UInt64? {
    clause(for: priority, at: minute).flatMap { clauses[$0].bytesPerSecond }
  }
}

/// A part of each day, by the local clock.
package struct DayHours: Sendable, Equatable {
  /// Minutes of the day, from 0 to 1439.
  package let start: Int
  /// Not included. At or before the start, it is on the next day: `23:00-07:00`.
  package let end: Int

  package init(from start: Int, to end: Int) { (self.start, self.end) = (start, end) }

  package func contains(_ minute: Int) -> Bool {
    start < end ? (start..<end).contains(minute) : minute >= start || minute < end
  }
}

// MARK: text

extension RateRules {
  static let minimum: UInt64 = 1024

  /// Reads `2M 08:00-23:00, none`: clauses with commas between. A clause is a rate or `none`, and perhaps a priority
  /// and a time of day, in any order.
  /// - Throws: what is wrong with it.
  init(_ text: String) throws(InvalidValue) {
    var clauses: [Clause] = []
    for part in text.split(at: ",", omittingEmptySubsequences: false) { clauses.append(try Clause(part)) }
    self.clauses = clauses
  }

  package var text: String { clauses.map(\.text).joined(separator: ", ") }

  /// What a person gave as an option.
  package static func read(_ text: String) throws(Defect) -> RateRules {
    do throws(InvalidValue) { return try RateRules(text) } catch { throw Defect(line: nil, reason: error.reason) }
  }
}

extension RateRules.Clause {
  fileprivate init(_ text: Substring) throws(InvalidValue) {
    var rate: UInt64??
    for word in words(text) {
      if rate == nil, word == "none" {
        rate = .some(nil)
      } else if priority == nil, let found = Priority(rawValue: String(word)) {
        priority = found
      } else if hours == nil, let found = DayHours(word) {
        hours = found
      } else if rate == nil, let found = byteCount(word), found >= RateRules.minimum {
        rate = found
      } else {
        throw Self.invalid
      }
    }
    guard let rate else { throw Self.invalid }
    bytesPerSecond = rate
  }

  private static let invalid = InvalidValue(
    "must be bytes per second, at least 1k, such as 500k or 2M; or clauses, such as `low 500k, 2M 08:00-23:00, none`")

  fileprivate var text: String {
    let words = [bytesPerSecond.map(byteCountText) ?? "none", priority?.rawValue, hours?.text]
    return words.compactMap { $0 }.joined(separator: " ")
  }
}

extension DayHours {
  /// `HH:MM-HH:MM`; 24:00 is the end of the day.
  fileprivate init?(_ text: Substring) {
    let parts = text.split(at: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let start = Self.minute(parts[0]), let end = Self.minute(parts[1]), start < 24 * 60
    else { return nil }
    self.init(from: start, to: end % (24 * 60))
  }

  private static func minute(_ text: Substring) -> Int? {
    let parts = text.split(at: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      let hour = decimal(parts[0]), let minute = decimal(parts[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
    else { return nil }
    return Int(hour * 60 + minute)
  }

  fileprivate var text: String { "\(Self.text(start))-\(end == 0 ? "24:00" : Self.text(end))" }

  private static func text(_ minute: Int) -> String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(two(minute / 60)):\(two(minute % 60))"
  }
}
