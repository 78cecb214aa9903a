/// Why an attempt or a job failed (spool.5, FAILURE CODES). Records contain the raw value, and `http-` with the status
/// for ``http``.
package enum FailureCode: String, CaseIterable, Sendable {
  // Temporary.
  case resolve, connect, tls, stalled, timeout, cut
  case shortBody = "short-body"
  case badResponse = "bad-response"
  case mismatchSize = "mismatch-size"
  case mismatchChecksum = "mismatch-crc32"
  case mismatchSHA256 = "mismatch-sha256"
  case mismatchSHA512 = "mismatch-sha512"
  case mismatchSHA1 = "mismatch-sha1"
  case mismatchMD5 = "mismatch-md5"
  case otherKind = "other-kind"
  case badEntries = "bad-entries"
  case rejected, hook
  case resolveHook = "resolve-hook"
  case hookChanged = "hook-changed"
  case deliver
  case diskFull = "disk-full"
  case noOutput = "no-output"
  case noNetwork = "no-network"
  case proxy
  case tooLargeHere = "too-large-here"
  case io
  // Temporary for 408, 425, 429 and 5xx, else permanent.
  case http = "http-NNN"
  // Permanent.
  case malformed
  case badOutput = "bad-output"
  case outputExists = "output-exists"
  case tooLarge = "too-large"
  case expired, redirect, `protocol`, encoded, mismatch, unresolvable
  case killsWorker = "kills-worker"

  /// Whether another attempt can succeed.
  package enum Class: String, Sendable { case temporary, permanent }

  /// The class of every code but ``http``, whose status decides.
  package var ownClass: Class {
    switch self {
    case .malformed, .badOutput, .outputExists, .tooLarge, .expired, .redirect, .protocol, .encoded, .mismatch,
      .unresolvable, .killsWorker:
      .permanent
    case .resolve, .connect, .tls, .stalled, .timeout, .cut, .shortBody, .badResponse, .mismatchSize,
      .mismatchChecksum, .mismatchSHA256, .mismatchSHA512, .mismatchSHA1, .mismatchMD5, .otherKind, .badEntries,
      .rejected, .hook, .resolveHook, .hookChanged, .deliver, .diskFull, .noOutput, .noNetwork, .proxy, .tooLargeHere,
      .io, .http:
      .temporary
    }
  }

  /// The code of data that has another digest than it should.
  init(mismatchOf algorithm: DigestAlgorithm) {
    switch algorithm {
    case .crc32: self = .mismatchChecksum
    case .md5: self = .mismatchMD5
    case .sha1: self = .mismatchSHA1
    case .sha256: self = .mismatchSHA256
    case .sha512: self = .mismatchSHA512
    }
  }

  /// Whether this machine's network connection or proxy fails, whatever the job and the host.
  package var isOfLocalNetwork: Bool { self == .noNetwork || self == .proxy }

  /// Whether no server was reached.
  package var isOfReaching: Bool { self == .resolve || self == .connect }

  /// Whether it is about a server, so that the server could be reached.
  package var isOfServer: Bool {
    switch self {
    case .http, .resolve, .connect, .tls, .stalled, .timeout, .cut, .shortBody, .badResponse, .otherKind, .redirect,
      .encoded:
      true
    case .mismatchSize, .mismatchChecksum, .mismatchSHA256, .mismatchSHA512, .mismatchSHA1, .mismatchMD5, .mismatch,
      .badEntries, .rejected, .hook, .resolveHook, .hookChanged, .deliver, .diskFull, .noOutput, .noNetwork, .proxy,
      .tooLargeHere,
      .io, .malformed, .badOutput, .outputExists, .tooLarge, .expired, .protocol, .unresolvable, .killsWorker:
      false
    }
  }

  /// Whether an attempt that ends with this failure counts against `attempts:`.
  package var burnsAttempt: Bool { self != .diskFull && self != .noOutput && !isOfLocalNetwork }

  /// Whether another server would fail with the same error now.
  package var isOfAllServers: Bool {
    isOfLocalNetwork || [.diskFull, .tooLargeHere, .hook, .hookChanged].contains(self)
  }

  /// Whether a response broke off.
  package var isCut: Bool { self == .cut || self == .shortBody || self == .stalled }

  /// Whether the data is not what the job asked for.
  package var isMismatch: Bool {
    switch self {
    case .mismatchSize, .mismatch, .rejected, .hookChanged: true
    case .mismatchChecksum, .mismatchSHA256, .mismatchSHA512, .mismatchSHA1, .mismatchMD5: true
    case .http, .resolve, .connect, .tls, .stalled, .timeout, .cut, .shortBody, .badResponse, .otherKind, .redirect,
      .badEntries, .hook, .resolveHook, .deliver, .diskFull, .noOutput, .noNetwork, .proxy, .tooLargeHere, .io,
      .malformed,
      .badOutput, .outputExists, .tooLarge, .expired, .protocol, .encoded, .unresolvable, .killsWorker:
      false
    }
  }
}

/// What went wrong, before it is known when to try again.
package struct Failure: Error, Sendable {
  /// Which kind of failure (spool.5, FAILURE CODES).
  package var code: FailureCode
  /// For ``FailureCode/http``: 100…999.
  package var status: Int?
  /// For a person: what happened and what to do. Free of secrets and control bytes.
  package var reason: String
  /// What was expected; nil if the failure is no comparison.
  package var expected: String?
  /// What was found instead.
  package var found: String?
  /// The number of the invalid line of the job file.
  package var line: Int?
  /// Seconds that the server asked to wait.
  package var retryAfter: Int?
  /// A refusal that may be temporary although its status is not: the job has bytes of the file already, or the host
  /// that refused was named only by a redirect, as when a signed link has expired.
  package let mayPass: Bool
  /// What else the attempt tried, for a person.
  package var tried: String?
  /// `HOST:PORT` of the proxy, for ``FailureCode/proxy``.
  package var proxy: String?

  /// - Parameter retryAfter: seconds that the server asked to wait.
  package init(
    _ code: FailureCode, _ reason: String, status: Int? = nil, expected: String? = nil, found: String? = nil,
    line: Int? = nil, retryAfter: Int? = nil, mayPass: Bool = false
  ) {
    self.mayPass = mayPass
    self.code = code
    self.status = status
    self.reason = reason
    self.expected = expected
    self.found = found
    self.line = line
    self.retryAfter = retryAfter
  }

  /// The code as records spell it.
  package var label: String {
    if code == .http { return "http-\(status ?? 0)" }
    return code.rawValue
  }

  /// Whether another attempt may succeed.
  package var failureClass: FailureCode.Class {
    guard code == .http, let status else { return code.ownClass }
    if mayPass || retryAfter != nil { return .temporary }
    // Server errors (RFC 9110 section 15.6), too many requests (RFC 6585 section 4), or too early.
    return status == 408 || status == 425 || status == 429 || status >= 500 ? .temporary : .permanent
  }

  /// Whether `status` normally refuses a file for good, but is also the answer to an expired link or login.
  package static func isRefusal(status: Int?) -> Bool {
    status.map { [400, 401, 403, 404, 410].contains($0) } ?? false
  }
  /// This many refusals in a row count as temporary.
  package static let mostRefusals = 2
}
