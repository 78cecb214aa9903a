/// Why an attempt or a job failed (spool.5, FAILURE CODES). What a code means is in its ``row``; a new one is a case
/// and a row here, and an entry in the manual.
@dynamicMemberLookup package enum FailureCode: String, CaseIterable, Sendable {
  case resolve, connect, tls, stalled, timeout, cut
  case shortBody = "short-body"
  case badResponse = "bad-response"
  case mismatchSize = "mismatch-size"
  /// Records have the algorithm behind `mismatch-` (``Failure/digest``).
  case mismatchDigest = "mismatch-DIGEST"
  case wrongPiece = "wrong-piece"
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
  /// Records have the status behind `http-` (``Failure/status``), which decides: ``row(status:)``.
  case http = "http-NNN"
  case malformed
  case badOutput = "bad-output"
  case outputExists = "output-exists"
  case tooLarge = "too-large"
  case expired, redirect, `protocol`, encoded, mismatch, unresolvable
  case privateAddress = "private-address"
  case serverAway = "server-away"
  case killsWorker = "kills-worker"
  case unsigned, rollback
  case badSignature = "bad-signature"
  case unknownKey = "unknown-key"
  case expiredKey = "expired-key"
  case revokedKey = "revoked-key"
  case noVerifier = "no-verifier"
  case noPieces = "no-pieces"

  package enum Class: String, Sendable { case temporary, permanent }

  package enum Blame: Sendable {
    /// This machine's network connection or its proxy fails, whatever the job and the host.
    case network
    /// The server cannot be reached, or serves nobody now.
    case server
    /// What the server says about this file, or how it sends it.
    case resource
    /// The job, its hooks, or this machine's disks.
    case job
  }

  /// What may help at once, beside waiting.
  package enum OtherWay: Sendable { case connection, addressFamily, request }

  package struct Row: Sendable {
    /// See ``Failure/failureClass`` for what else decides.
    package let failureClass: Class
    package let blame: Blame
    /// What has happened, in a sentence. spool(5) says the same, and more.
    package let meaning: String
    package let advice: String
    /// Whether an attempt that ends so counts against `attempts:`. Also true for a server's failure: that one counts
    /// against no job as long as its server rests (``Failure/rest``).
    package var burnsAttempt = true
    package var isCut = false
    package var isMismatch = false
    /// Whether another server would fail with the same error now.
    package var isOfAllServers = false
    package var otherWay: OtherWay?
    /// Whether it ends a standing order: its text has to be changed, its time is over, or it kills workers.
    package var endsOrder = false
    /// Whether it may be enough to wait. Otherwise attempts fail until somebody acts.
    package var mayPassByItself = false
    package var needsURL = false
    /// A response led to it.
    fileprivate var isAnswer = false
    package var showsAnswer: Bool { isAnswer || isMismatch }

    fileprivate init(
      _ failureClass: Class, _ blame: Blame, _ meaning: String, _ advice: String, _ more: (inout Row) -> Void = { _ in }
    ) {
      (self.failureClass, self.blame, self.meaning, self.advice) = (failureClass, blame, meaning, advice)
      more(&self)
    }
  }

  /// What the code means; of ``http``, what it means whatever the status.
  package var row: Row {
    switch self {
    case .resolve: Self.unreached(.server, "The host name could not be resolved.")
    case .connect: Self.unreached(.server, "The host could not be connected to.")
    case .timeout: Self.unreached(.resource, "The transfer took longer than the total time of timeout.")
    case .stalled:
      Self.cutOff("No byte arrived for the idle time of timeout, or the rate was below min-rate.", isAnswer: false)
    case .cut: Self.cutOff("The connection was lost within the body.")
    case .shortBody: Self.cutOff("The body was shorter than the length that the server had announced.")
    case .tls:
      Row(
        .temporary, .resource, "No secure connection: the certificate is not trusted, or the handshake failed.",
        "The host's certificate is not trusted: check the link, the clock and the certificates of this machine."
      ) { $0.otherWay = .addressFamily }
    case .badResponse:
      Row(.temporary, .resource, "The response violates HTTP, or does not answer the request.", Self.odd) {
        ($0.needsURL, $0.otherWay, $0.isAnswer) = (true, .connection, true)
      }
    case .redirect:
      Row(
        .permanent, .resource, "More than 20 redirects, or one that leads to a scheme that is not allowed.", Self.odd
      ) { ($0.needsURL, $0.isAnswer) = (true, true) }
    case .encoded:
      Row(
        .permanent, .resource, "The file came in a Content-Encoding, and the worker asked for none.",
        "The file came encoded: write encoded: keep or encoded: decode into the job's file."
      ) { $0.isAnswer = true }
    case .otherKind:
      Row(
        .temporary, .resource,
        "The server sent a whole file where data was to be resumed, and it does not look like the same.",
        "The server sent another file, perhaps a login page. If it is the right one, cancel the job and add it anew."
      ) { ($0.needsURL, $0.isAnswer) = (true, true) }
    case .http:
      Row(.temporary, .resource, "The server answered with a status that is an error.", Self.refused) {
        ($0.needsURL, $0.otherWay, $0.isAnswer) = (true, .request, true)
      }
    case .mismatchSize:
      Self.differs(
        .temporary,
        """
        The file does not have the declared size, or not as many bytes as its pieces, or the server sent more than it \
        had announced.
        """)
    case .mismatchDigest:
      Self.differs(
        .temporary,
        "The file does not have the declared digest, or, if the job declares none, the one that the server states.")
    case .mismatch:
      Self.differs(.permanent, "The file did not match the job for the third time, or twice in the same way.")
    case .wrongPiece:
      Row(
        .temporary, .resource,
        "A piece of the file is wrong, whichever mirror sends it, or a mirror sent four wrong pieces in a row.",
        "The mirrors send some pieces wrong: name another one, or ask whether the list of pieces is of this file."
      ) { $0.isAnswer = true }
    case .noPieces:
      Row(
        .permanent, .job, "The list that pieces names is not in the spool, or was changed.",
        "The job's list of pieces is not in the spool: add the job anew."
      ) { $0.isOfAllServers = true }
    case .badEntries:
      Row(
        .temporary, .job, "The list of a subscription cannot be read.",
        """
        The list cannot be read: check link and format; to keep the file itself current: `subscribe --entries file`.
        """
      ) { ($0.needsURL, $0.isAnswer) = (true, true) }
    case .rejected:
      Row(.temporary, .job, "The verify hook rejected the file.", Self.unverified) { $0.isMismatch = true }
    case .hookChanged:
      Row(.temporary, .job, "The verify hook changed the data.", Self.unverified) {
        ($0.isMismatch, $0.isOfAllServers) = (true, true)
      }
    case .hook: Row(.temporary, .job, "The verify hook gave no verdict.", Self.unverified) { $0.isOfAllServers = true }
    case .resolveHook: Row(.temporary, .job, "The hook resolve gave no links.", Self.unresolved)
    case .unresolvable:
      Row(
        .permanent, .job, "The job says resolve, and there is no hook resolve, or the hook knows no such file.",
        Self.unresolved)
    case .deliver:
      Row(
        .temporary, .job, "The file is in its place, and the hook deliver did not accept it.",
        "The hook deliver did not take the file: see its output. Nothing is fetched again.")
    case .diskFull:
      Row(
        .temporary, .job, "No disk space is left, or less than the data needs.", "The disk is full: make space."
      ) { ($0.burnsAttempt, $0.isOfAllServers) = (false, true) }
    case .noOutput:
      Row(
        .temporary, .job, "The directory of the output cannot be written to.",
        "The directory for the file cannot be written to: make it writable."
      ) { $0.burnsAttempt = false }
    case .noNetwork:
      Row(
        .temporary, .network, "This host has no network.",
        "This machine has no network: the job goes on when it has one."
      ) { ($0.mayPassByItself, $0.burnsAttempt, $0.isOfAllServers) = (true, false, true) }
    case .proxy:
      Row(
        .temporary, .network, "The proxy cannot be resolved or reached, asks for a login, or sends no usable answer.",
        "The proxy fails: check it, and how it is set."
      ) { ($0.burnsAttempt, $0.isOfAllServers) = (false, true) }
    case .tooLargeHere:
      Row(
        .temporary, .job, "The file would be larger than the worker, or the file system, may make one.",
        "The file is larger than this file system or ulimit -f allows: raise the limit."
      ) { $0.isOfAllServers = true }
    case .io:
      Row(
        .temporary, .job, "Reading or writing the spool or the output failed.",
        "The disk failed: see the kernel's log first.")
    case .malformed:
      Row(
        .permanent, .job, "The file is not a valid job.",
        "The job's file is wrong: correct the line that the reason names."
      ) { $0.endsOrder = true }
    case .badOutput:
      Row(
        .permanent, .job, "The file cannot be put at output.",
        "The file cannot be put there: change output in the job's file.")
    case .outputExists:
      Row(
        .permanent, .job, "A file exists at the output, and nothing shows that it is the declared one.",
        "Another file has the name: move it away, or write overwrite: yes into the job's file.")
    case .tooLarge:
      Row(
        .permanent, .job, "The file is larger than max-size of the job or of the worker.",
        "The file is larger than max-size allows: raise it, or cancel the job."
      ) { $0.isAnswer = true }
    case .expired:
      Row(
        .permanent, .job, "The time expires has come.",
        "The job's time is over: change expires in its file, or cancel it."
      ) { $0.endsOrder = true }
    case .serverAway:
      Row(
        .permanent, .server,
        "The server, or each of the mirrors, has answered nobody for as long as the job is patient.",
        "The server has answered nobody for so long: check the link, then try again."
      ) { $0.needsURL = true }
    case .protocol:
      Row(
        .permanent, .job, "A URL of a scheme that the worker's --protocols does not list.",
        "The worker does not allow this kind of URL: see --protocols."
      ) { $0.endsOrder = true }
    case .privateAddress:
      Row(
        .permanent, .resource, "The server has private addresses only, and defaults says allow-private: no.",
        "The link leads into a private network: correct it, or write allow-private: yes into the spool's defaults."
      ) { $0.needsURL = true }
    case .killsWorker:
      Row(
        .permanent, .job, "Several workers in a row died while they ran the job.",
        "Workers died with this job: see their logs first."
      ) { $0.endsOrder = true }
    case .unsigned:
      Row(
        .permanent, .job,
        "Nobody vouches for the file, or for the list of a subscription, and defaults says signed: required.",
        "Nobody vouches for the file: give the job a signature, or add it from a signed list.")
    case .badSignature:
      Row(
        .temporary, .job, "The signature does not fit the file or the list.",
        "The signature is not of this file: look whether the two belong together."
      ) { $0.isMismatch = true }
    case .rollback:
      Row(
        .temporary, .resource, "The list or file of a subscription was signed before the last one.",
        "It is older than the last one: a mirror lags behind, or somebody replays it."
      ) { $0.isAnswer = true }
    case .unknownKey:
      Self.ofKey(
        "No key of the spool has made the signature, or its keys cannot be trusted.",
        "No key of the spool made the signature: put the right one into keys.")
    case .expiredKey:
      Self.ofKey(Self.deadKey, "The key of the signature has expired: put its owner's new one into keys.")
    case .revokedKey:
      Self.ofKey(Self.deadKey, "The key of the signature is revoked: trust nothing that it has signed since.")
    case .noVerifier:
      Row(
        .temporary, .job, "The program that checks such signatures is missing, or gave no verdict.",
        "Signatures cannot be checked here: install the program that the reason names."
      ) { $0.isOfAllServers = true }
    }
  }

  private static func unreached(_ blame: Blame, _ meaning: String) -> Row {
    Row(.temporary, blame, meaning, away) { $0.mayPassByItself = true }
  }

  private static func cutOff(_ meaning: String, isAnswer: Bool = true) -> Row {
    Row(.temporary, .resource, meaning, away) {
      ($0.mayPassByItself, $0.isCut, $0.otherWay, $0.isAnswer) = (true, true, .connection, isAnswer)
    }
  }

  private static func differs(_ failureClass: Class, _ meaning: String) -> Row {
    Row(failureClass, .job, meaning, "The file is not what the job declares: check its digests and its size.") {
      $0.isMismatch = true
    }
  }

  private static func ofKey(_ meaning: String, _ advice: String) -> Row {
    Row(.permanent, .job, meaning, advice) { $0.isOfAllServers = true }
  }

  /// What ``http`` means with this status (RFC 9110 section 15, RFC 6585 section 4).
  package static func row(status: Int) -> Row {
    let code = FailureCode.http.row
    func row(_ failureClass: Class, _ blame: Blame, _ advice: String, needsURL: Bool) -> Row {
      Row(failureClass, blame, code.meaning, advice) { row in
        (row.needsURL, row.mayPassByItself, row.otherWay) = (needsURL, !needsURL, code.otherWay)
      }
    }
    let busy = "The server was busy or broken: wait, or name another mirror."
    return switch status {
    case 401, 403, 407:
      row(
        .permanent, .resource,
        "The server wants a login, or the link has expired: give the job a header or another link.", needsURL: true)
    case 404, 410: row(.permanent, .resource, "The file is not there: look for its new place.", needsURL: true)
    case 408, 429, 503: row(.temporary, .server, busy, needsURL: false)
    case 425, 500...: row(.temporary, .resource, busy, needsURL: false)
    default: row(.permanent, .resource, Self.refused, needsURL: true)
    }
  }

  private static let away = "The host could not be reached, or broke off: wait, or name another mirror."
  private static let odd = "The server does not answer as it should: open the link in a browser."
  private static let refused = "The server refuses the request: open the link in a browser."
  private static let unverified = "The hook verify did not accept the file: see its output."
  private static let deadKey = "The key that has made the signature has expired, or is revoked."
  private static let unresolved = "The hook resolve gave no link: see its output."

  package subscript<Value>(dynamicMember column: KeyPath<Row, Value>) -> Value { row[keyPath: column] }

  // MARK: in records

  /// What records spell it as; ``http`` has the status in place of `NNN`.
  package var labels: [String] {
    self == .mismatchDigest ? DigestAlgorithm.allCases.map { label(digest: $0) } : [rawValue]
  }

  private static let byLabel = Dictionary(
    uniqueKeysWithValues: allCases.flatMap { code in code.labels.map { ($0, code) } })

  fileprivate func label(status: Int = 0, digest: DigestAlgorithm? = nil) -> String {
    if self == .http { return "http-\(status)" }
    guard self == .mismatchDigest, let digest else { return rawValue }
    return "mismatch-\(digest.rawValue)"
  }

  package init?(label: String) {
    guard let code = Self.status(of: label) == nil ? Self.byLabel[label] : .http else { return nil }
    self = code
  }

  /// The status in `http-NNN`; nil for other codes.
  package static func status(of label: String) -> Int? { label.begins(with: "http-") ? Int(label.dropFirst(5)) : nil }

  package static func row(of label: String) -> Row? { status(of: label).map { row(status: $0) } ?? byLabel[label]?.row }
}

/// What went wrong, before it is known when to try again.
package struct Failure: Error, Sendable {
  package var code: FailureCode
  /// For ``FailureCode/http``: 100…999.
  package var status: Int?
  /// For ``FailureCode/mismatchDigest``.
  package var digest: DigestAlgorithm?
  /// For a person: what happened and what to do. Free of secrets and control bytes.
  package var reason: String
  /// What was expected; nil if the failure is no comparison.
  package var expected: String?
  package var found: String?
  /// The number of the invalid line of the job file.
  package var line: Int?
  /// Seconds that the server asked to wait.
  package var retryAfter: Int?
  /// A refusal that may be temporary although its status is not: the job has bytes of the file already, or the host
  /// that refused was named only by a redirect, as when a signed link has expired.
  package let mayPass: Bool
  package var tried: String?
  /// `HOST:PORT` of the proxy, for ``FailureCode/proxy``.
  package var proxy: String?
  /// Seconds for which its server rests now. Then the failure is the server's, and counts against no job.
  package var rest: Int64?
  /// Whether the job's patience with its server is over.
  package var isServerAway = false
  /// Another mirror has failed for a time only, and may have the right file.
  package var mayBeElsewhere = false
  /// It is not about the data that is there: what is wrong was not taken, or is set aside already.
  package var keepsData = false
  /// The number of the mirror that alone has sent data which is wrong.
  package var wrongMirror: Int?
  /// Whether a person waits, who can correct it sooner than it may pass.
  package var isFinal = false

  package init(
    _ code: FailureCode, _ reason: String, status: Int? = nil, expected: String? = nil, found: String? = nil,
    line: Int? = nil, retryAfter: Int? = nil, mayPass: Bool = false
  ) {
    (self.mayPass, self.code, self.status, self.reason, self.expected) = (mayPass, code, status, reason, expected)
    (self.found, self.line, self.retryAfter) = (found, line, retryAfter)
  }

  package var label: String { code.label(status: status ?? 0, digest: digest) }

  package var blame: FailureCode.Blame { status.map { FailureCode.row(status: $0) }?.blame ?? code.blame }

  package var burnsAttempt: Bool { rest == nil && code.burnsAttempt }

  package var failureClass: FailureCode.Class {
    if isFinal { return .permanent }
    guard code == .http, let status else { return code.failureClass }
    return mayPass || retryAfter != nil ? .temporary : FailureCode.row(status: status).failureClass
  }

  /// Whether `status` normally refuses a file for good, but is also the answer to an expired link or login.
  package static func isRefusal(status: Int?) -> Bool {
    status.map { [400, 401, 403, 404, 410].contains($0) } ?? false
  }
  /// This many refusals in a row count as temporary.
  package static let mostRefusals = 2

  package static let unsigned = Failure(
    .unsigned,
    "the spool's defaults say `signed: required`, and there is no `signature:`, nor a signed list with a digest")

  /// A payload that is not what was declared.
  /// - Parameter reason: nil for one that goes by the mismatch.
  package init(_ mismatch: Mismatch, reason: String? = nil) {
    let (expected, found) = (mismatch.expected, mismatch.found)
    switch mismatch.property {
    case .size: self.init(.mismatchSize, reason ?? "the data has the wrong size", expected: expected, found: found)
    case .digest(let algorithm):
      self.init(
        .mismatchDigest, reason ?? "the data does not have the declared \(algorithm.title)", expected: expected,
        found: found)
      digest = algorithm
    case .piece: self.init(.wrongPiece, reason ?? "a piece of the data is wrong", expected: expected, found: found)
    }
  }
}
