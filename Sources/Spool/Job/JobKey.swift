/// A key of the job format (spool.5, JOB FORMAT). ``all`` is the only list of them: readers, writers, `defaults`, the
/// options of `spoolrun add` and the tests of the manual go by it.
package struct JobKey: Sendable {
  package let name: String
  /// One line of help, as `spoolrun add --help` shows it.
  package let help: String
  /// What the value is called in help and in the manual's synopsis, in lower case: `bytes`.
  package let valueName: String
  package let option: OptionForm
  /// All values that it may have; empty where these are too many.
  package let choices: [String]
  package let isRepeatable: Bool
  package let scope: Scope
  let mayNameHost: Bool
  /// Whether it came with version 0.3: a worker of version 0.2 gives a job up for it.
  let isNew: Bool

  private let read: @Sendable (WrittenValue, inout JobRequest) throws(InvalidValue) -> Void
  fileprivate let written: @Sendable (JobRequest) -> [WrittenValue]
  fileprivate let inherit: @Sendable (inout JobRequest, JobRequest) -> Void

  package enum Scope: Sendable {
    /// Jobs. It makes no sense for several of them.
    case job
    case jobAndDefaults
    /// `defaults`, for the worker itself: see ``NetworkKeys``.
    case defaults
  }

  /// How `spoolrun add` sets it.
  package enum OptionForm: Sendable {
    case argument
    /// `--name VALUE`, and perhaps `-x VALUE`, or by the name that other programs have for it.
    case value(short: Character? = nil, also: String? = nil)
    /// `--name` alone, for the value `yes`.
    case flag
  }

  /// A key that is given once. A job's own value takes the place of the one in `defaults`.
  init<Value: Sendable>(
    _ name: String, _ path: WritableKeyPath<JobRequest, Value?> & Sendable, _ grammar: ValueGrammar<Value>,
    valueName: String, option: OptionForm = .value(), scope: Scope = .jobAndDefaults, isNew: Bool = false, help: String
  ) {
    self.init(
      name, RequestField(path), grammar, valueName: valueName, option: option, scope: scope, isNew: isNew, help: help)
  }

  /// The same for a value that is in no field of its own.
  init<Value: Sendable>(
    _ name: String, _ field: RequestField<Value?>, _ grammar: ValueGrammar<Value>, valueName: String,
    option: OptionForm = .value(), scope: Scope = .jobAndDefaults, isNew: Bool = false, help: String
  ) {
    (self.name, self.help, self.valueName, self.option) = (name, help, valueName, option)
    (self.scope, self.isNew, isRepeatable, mayNameHost) = (scope, isNew, false, false)
    choices = grammar.choices
    read = { (value, request) throws(InvalidValue) in
      if field.get(request) != nil { throw InvalidValue("given twice") }
      field.set(&request, try grammar.read(value))
    }
    written = { request in field.get(request).map { [grammar.write($0)] } ?? [] }
    inherit = { request, defaults in
      if field.get(request) == nil, let value = field.get(defaults) { field.set(&request, value) }
    }
  }

  /// A key that may be given several times.
  /// - Parameter inheriting: what a job has, of its own values and those in `defaults`.
  init<Value: Sendable>(
    _ name: String, list path: WritableKeyPath<JobRequest, [Value]> & Sendable, _ grammar: ValueGrammar<Value>,
    valueName: String, option: OptionForm = .value(), scope: Scope = .jobAndDefaults, mayNameHost: Bool = false,
    help: String, inheriting: @escaping @Sendable ([Value], [Value]) -> [Value] = { own, _ in own }
  ) {
    (self.name, self.help, self.valueName, self.option) = (name, help, valueName, option)
    (self.scope, isNew, isRepeatable, self.mayNameHost) = (scope, false, true, mayNameHost)
    choices = grammar.choices
    let field = RequestField(path)
    read = { (value, request) throws(InvalidValue) in request[keyPath: path].append(try grammar.read(value)) }
    written = { request in field.get(request).map { grammar.write($0) } }
    inherit = { request, defaults in field.set(&request, inheriting(field.get(request), field.get(defaults))) }
  }

  /// The key that `head`, what a line has before its colon, spells, and the host behind its `@`.
  package static func find(_ head: Substring) -> (key: JobKey, host: String?)? {
    let parts = head.split(at: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard let key = byName[String(parts[0])], parts.count == 1 || key.mayNameHost else { return nil }
    return (key, parts.count == 2 ? String(parts[1]) : nil)
  }

  fileprivate static let ofFiles = all + ofOrders
  /// The keys that a job inherits from `defaults`, in ``all``: a copy of a key takes longer than to inherit it.
  fileprivate static let inherited = all.indices.filter { all[$0].scope == .jobAndDefaults }

  private static let byName = Dictionary(uniqueKeysWithValues: ofFiles.map { ($0.name, $0) })

  func set(_ value: WrittenValue, in request: inout JobRequest) throws(Defect) {
    do throws(InvalidValue) {
      if value.text.isEmpty { throw InvalidValue("has no value") }
      try read(value, &request)
    } catch {
      throw Defect(line: value.line, reason: "\(name): \(error.reason)")
    }
  }

}

extension JobRequest {
  /// Takes in one value as a person gave it, which must be one line of a job.
  package mutating func set(_ key: JobKey, _ text: String) throws(Defect) {
    if text.utf8.contains(where: isControl) { throw Defect(line: nil, reason: "\(key.name): contains control bytes") }
    try key.set(WrittenValue(text: String(trimmed(text[...]))), in: &self)
  }

  package func inheriting(_ defaults: JobRequest) -> JobRequest {
    var result = self
    if defaults == .none { return result }
    for index in JobKey.inherited { JobKey.all[index].inherit(&result, defaults) }
    return result
  }

  /// The job file that asks for this. ``JobText`` reads the same request from it, but for the numbers of lines.
  package var text: String {
    var text = signedBy.map { "\(JobLines.signedStart)\($0)\n" } ?? ""
    // By index, because a copy of each key takes longer than to look for its value.
    for index in JobKey.ofFiles.indices {
      for value in JobKey.ofFiles[index].written(self) {
        text += JobKey.ofFiles[index].name
        if let host = value.host { text += "@" + host }
        text += ": "
        text += value.text
        text += "\n"
      }
    }
    return text
  }
}

/// How a key gets to its value in a request.
///
/// To write a job, every key looks for its value, and a list may have a million jobs. A key path copies the whole
/// request for each look, so a stored field is read at its offset.
struct RequestField<Value: Sendable>: Sendable {
  let get: @Sendable (JobRequest) -> Value
  let set: @Sendable (inout JobRequest, Value) -> Void

  init(get: @escaping @Sendable (JobRequest) -> Value, set: @escaping @Sendable (inout JobRequest, Value) -> Void) {
    (self.get, self.set) = (get, set)
  }

  init(_ path: WritableKeyPath<JobRequest, Value> & Sendable) {
    set = { request, value in request[keyPath: path] = value }
    // Without an offset it is computed (MemoryLayout.offset(of:)).
    guard let offset = MemoryLayout<JobRequest>.offset(of: path) else {
      get = { request in request[keyPath: path] }
      return
    }
    get = { request in withUnsafeBytes(of: request) { $0.load(fromByteOffset: offset, as: Value.self) } }
  }
}

extension JobKey {
  /// All keys, in the order in which help lists them and a job is written.
  package static let all = ofJobs + network + ofServers + [signed]
  package static let ofJobs = [url, resolve] + place + payload + handling

  /// A first line without a key is a URL as well (spool(5), JOBS).
  package static let url = JobKey(
    "url", list: \.urls, .line, valueName: "url", option: .argument, scope: .job,
    help: "URL of the file; several are mirrors of it.")

  package static let resolve = JobKey(
    "resolve", \.resolve, .line, valueName: "text", scope: .job,
    help: "Ask the spool's hook `resolve` with this text for the URL before each attempt.")

  private static let place = [output, root, mode]

  /// Relative, and without `..`: ``OutputPath/defect(of:)``.
  package static let output = JobKey(
    "output", \.output, .outputPath, valueName: "path", option: .value(short: "o"), scope: .job,
    help: "Path of the downloaded file below the output directory, or its directory/. (default: the URL's last part)")

  /// A name, not a path: only the spool's owner can make the links in `roots/`.
  package static let root = JobKey(
    "root", \.root, .rootName, valueName: "name", scope: .job,
    help: "Output directory, as a name in the spool's directory roots. (default: the worker's)")

  /// chmod(2).
  private static let mode = JobKey(
    "mode", \.mode,
    ValueGrammar(
      "permissions in octal, such as 644, by which the owner may read and write the file, and others may not write to "
        + "it", read: { PayloadMode($0) }, write: \.text), valueName: "mode",
    help: "Permissions of the downloaded file in octal, such as 644. (default: 600)")

  package static let size = JobKey(
    "size", \.expected.size, .fileSize, valueName: "bytes", scope: .job, help: "Size in bytes.")

  private static let payload =
    [size]
    + DigestAlgorithm.allCases.map { algorithm in
      JobKey(
        algorithm.rawValue,
        RequestField(get: { $0.expected.digests[algorithm] }, set: { $0.expected.digests[algorithm] = $1 }),
        .digest(algorithm), valueName: "hex", scope: .job, isNew: algorithm.isNew, help: algorithm.help)
    }
    + [
      pieces,
      JobKey(
        "type", \.types,
        ValueGrammar("media types, such as application/zip or image/*", read: { MediaTypes($0) }, write: \.text),
        valueName: "types",
        help: "Media types that the server may send the file as, such as application/zip or 'image/*'."),
      JobKey(
        "encoded", \.encoded, .choice("keep or decode"), valueName: "way", isNew: true,
        help: "What to do with a file in a Content-Encoding that nobody asked for: keep or decode it."),
      JobKey(
        "digests", \.digests, .digestNames, valueName: "names",
        help: "Digests to compute for the receipt, such as 'sha256 md5'."),
      signature,
    ]

  /// Of the payload. The list itself is in the spool (``PieceLists``).
  package static let pieces = JobKey(
    "pieces", \.expected.pieces,
    ValueGrammar(
      "a digest, the bytes of a piece and the SHA-256 of the list in the spool's pieces, such as sha256 1M DIGEST",
      read: { PieceKey($0) }, write: \.text), valueName: "file", scope: .job, isNew: true,
    help: "List of the digests of the file's pieces, as `spoolrun verify --pieces` prints it.")

  /// It is checked by the spool's keys (``TrustedKeys``).
  package static let signature = JobKey(
    "signature", \.signature, .signature, valueName: "url", scope: .job, isNew: true,
    help: "URL of the file's signature; for a list, the file with its signature, or inline.")

  /// Sent to the origin of each URL, or only to the host that `header@HOST` names; dropped when a redirect leads away.
  package static let header = JobKey(
    "header", list: \.headers, .header, valueName: "field", option: .value(short: "H"), mayNameHost: true,
    help: "Header field to send, such as 'Authorization: Bearer …'; may be repeated.",
    inheriting: { own, defaults in own.added(to: defaults) })

  /// RFC 9110 section 10.1.5.
  package static let userAgent = JobKey(
    "user-agent", \.userAgent, .text, valueName: "text", help: "The User-Agent to send. (default: spoolrun/VERSION)")

  /// RFC 9110 section 10.1.3.
  package static let referer = JobKey(
    "referer", \.referer, .pageURL, valueName: "url", help: "URL of the page that leads to the file, for Referer.")

  /// The order of jobs that wait; a running job is not stopped for another, unless it is low.
  package static let priority = JobKey(
    "priority", \.priority, .priority, valueName: "class", help: "Which jobs start first: high, normal or low.")

  private static let handling = [
    header, userAgent, referer,
    JobKey("overwrite", \.overwrite, .yesOrNo, valueName: "yes|no", option: .flag, help: "Replace an existing file."),
    JobKey(
      "attempts", \.attempts, .number(JobRequest.attemptRange), valueName: "n", option: .value(also: "tries"),
      help: "Maximum number of attempts. (default: \(JobRequest.defaultAttempts))"),
    JobKey(
      "patience", \.patience, .interval, valueName: "time", isNew: true,
      help: "Give up when the server has answered nobody for so long, such as 2d. (default: 5d)"),
    JobKey(
      "expires", \.expires,
      ValueGrammar("a date in UTC, such as 2026-12-01T00:00:00Z", read: { Timestamp($0) }, write: { "\($0)" }),
      valueName: "time", help: "Give up at this time, such as 2026-12-01T00:00:00Z."),
    JobKey(
      "timeout", \.timeout, .timeout, valueName: "time",
      help: "Idle time and optionally total time, such as '60s 7d'."),
    JobKey(
      "max-size", \.maxSize, .largestSize, valueName: "size", help: "Refuse a larger file, such as 2G."),
    JobKey(
      "limit-rate", \.limitRate,
      ValueGrammar(
        read: { (written) throws(InvalidValue) in try RateRules(written.text) },
        write: { WrittenValue(text: $0.text) }), valueName: "rate",
      help: "Maximum bytes per second, such as 2M, or by the time of day, such as '2M 08:00-23:00, none'."),
    JobKey(
      "min-rate", \.minRate, .minimumRate, valueName: "rate",
      help: "Minimum bytes per second, such as '1k over 5m'; 0 for none."),
    JobKey(
      "connections", \.connections, .number(JobRequest.connectionRange), valueName: "n",
      help: "Number of connections, at most 32. (default: the worker's)"),
    priority,
  ]
}

extension JobKey {
  /// The keys of `defaults` alone.
  package static let network = [
    JobKey(
      "netrc", \.network.netrc, .file, valueName: "yes|path", scope: .defaults,
      help: "Use the logins in ~/.netrc, or in another file."),
    JobKey(
      "cookies", \.network.cookies, .file, valueName: "yes|path", scope: .defaults,
      help: "Send the cookies that servers set during an attempt, and those in a file."),
    JobKey("proxy", \.network.proxy, .proxyURL, valueName: "url", scope: .defaults, help: "Proxy for all transfers."),
    JobKey(
      "ip", \.network.ipVersion, .choice("4 or 6"), valueName: "4|6", scope: .defaults, help: "Version of IP to use."),
    JobKey(
      "cert", \.network.certificate, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate to show to servers."),
    JobKey(
      "key", \.network.certificateKey, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate's private key."),
    JobKey(
      "cacert", \.network.authorities, .file, valueName: "path", scope: .defaults,
      help: "PEM file of the certificate authorities to trust."),
    JobKey(
      "allow-private", \.network.allowsPrivate, .yesOrNo, valueName: "yes|no", scope: .defaults,
      help: "Whether to connect to private addresses."),
  ]
}

extension JobKey {
  /// The keys of `defaults` alone that say how much is asked of servers.
  private static let ofServers = [
    JobKey(
      "per-host", list: \.servers.perHost, .rule("per-host", .number(1...1000)), valueName: "n", scope: .defaults,
      mayNameHost: true, help: "Maximum number of transfers from one server."),
    JobKey(
      "pace", list: \.servers.pace,
      .rule(
        "pace",
        ValueGrammar(
          "a number from 1 to 1000 and a unit of time, such as 2/s, 90/min or 1000/h", read: { RequestPace($0) },
          write: \.text)), valueName: "pace", scope: .defaults, mayNameHost: true,
      help: "Maximum number of requests to one server, such as 90/min."),
  ]
}

extension JobKey {
  private static let signed = JobKey(
    "signed", \.requiresSignature,
    ValueGrammar("required or no", read: { ["required": true, "no": false][$0] }, write: { $0 ? "required" : "no" }),
    valueName: "required", scope: .defaults, help: "Publish nothing that is not signed.")
}

extension ValueGrammar<JobRequest.Line> {
  fileprivate static let signature = ValueGrammar(
    read: { (written) throws(InvalidValue) in
      guard written.text.utf8.contains("://".utf8) || written.text == JobRequest.inlineSignature else {
        throw InvalidValue("must be the URL of a signature, or of a list `\(JobRequest.inlineSignature)`")
      }
      return JobRequest.Line(text: written.text, number: written.line ?? 0)
    }, write: { WrittenValue(text: $0.text) })
}

extension ValueGrammar<String> {
  /// With a port, because the port of a proxy has no default that all programs share.
  static let proxyURL = ValueGrammar(
    "SCHEME://HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT with the scheme http, https, socks5 or socks5h, and "
      + "characters such as @ and / of the password as %40 and %2F", read: { isProxy($0) ? $0 : nil }, write: { $0 })

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

extension JobRequest {
  /// Whether it asks to watch a list, and so belongs into `standing`.
  package var isStandingOrder: Bool { standing.every != nil }

  /// Why a file with this request cannot be claimed from `origin`; nil where it can.
  func misplacement(in origin: Directory) -> Defect? {
    switch origin {
    case .standing: orderDefect
    case .new, .urgent: jobDefect
    default: isStandingOrder ? orderDefect : jobDefect
    }
  }

  package var jobDefect: Defect? {
    if let signature, signature.text == Self.inlineSignature {
      return Defect(line: signature.number, reason: "signature: only a list has its signature inline")
    }
    if standing == StandingOrder() { return nil }
    let keys = JobKey.ofOrders.map { "`\($0.name)`" }.joined(separator: ", ")
    return Defect(line: nil, reason: "\(keys) belong to a subscription: its file goes into the directory standing")
  }

  /// Why the request is no standing order's.
  package var orderDefect: Defect? {
    if standing.every == nil { return Defect(line: nil, reason: "a subscription needs `every:`, such as every: 6h") }
    if let resolve { return Defect(line: resolve.number, reason: "resolve: belongs to a job, not to a subscription") }
    let isOfOneFile = standing.entries == .file
    if let output, !output.isDirectory, !isOfOneFile {
      return Defect(line: output.number, reason: "output: of a subscription is a directory, with a slash at its end")
    }
    if let signature, isOfOneFile, signature.text == Self.inlineSignature {
      return Defect(line: signature.number, reason: "signature: only a list has its signature inline")
    }
    if expected != Expectation() {
      return Defect(line: nil, reason: "`size` and digests belong to one file, not to a subscription")
    }
    return nil
  }
}

extension JobKey {
  package static let ofOrders = [
    JobKey(
      "every", \.standing.every, .interval, valueName: "time", scope: .job,
      help: "Time from one look at the list to the next, such as 6h."),
    JobKey(
      "entries", \.standing.entries, .choice("one of \(EntryFormat.listed)"), valueName: "format", scope: .job,
      help: "What the list is: \(EntryFormat.listed). (default: by its looks)"),
    JobKey(
      "first", \.standing.first, .firstEntries, valueName: "n", scope: .job,
      help: "How many of the entries that are there at first are fetched, or all. (default: 1)"),
    JobKey(
      "match", \.standing.match,
      ValueGrammar("a pattern for names, such as *.mp3", read: { $0.utf8.count <= 255 ? $0 : nil }, write: { $0 }),
      valueName: "glob", scope: .job, help: "Only files of such names, such as '*.mp3'."),
    JobKey(
      "keep", \.standing.keep, .number(1...100_000), valueName: "n", scope: .job, isNew: true,
      help: "Keep the last n files, and remove older ones that nobody has changed. (default: all)"),
  ]
}

extension ValueGrammar<Int> {
  static let interval = ValueGrammar(
    "a time from 1s to 365d, such as 6h", read: { duration($0) }, write: { durationText($0) })

  static let firstEntries = ValueGrammar(
    "a number of entries, or all",
    read: { text in
      if text == "all" { return StandingOrder.all }
      return decimal(text).flatMap { Int(exactly: $0) }.flatMap { $0 < StandingOrder.all ? $0 : nil }
    },
    write: { $0 == StandingOrder.all ? "all" : "\($0)" })
}
