internal import CLinux
internal import Glibc

/// What the workers of a spool know of a server or a proxy, as its file in `servers/` says it (spool.5, SERVERS).
package struct ServerNote: Sendable, Equatable {
  package struct Rest: Sendable, Equatable {
    package let since: Timestamp
    package let failed: Timestamp
    package private(set) var until: Timestamp
    /// `unreachable`, `asked` or `broken`.
    package let cause: String
    /// That of the failure, as records spell it.
    package let code: String
    /// For a person.
    package let reason: String
    package let failures: Int
    /// A hash of the URL that alone said so; 0 if it has credentials of its own; nil if several did.
    package let url: UInt64?
    /// The host for which it rests; nil for all.
    package let host: String?

    package init(
      since: Timestamp, failed: Timestamp, until: Timestamp, cause: String, code: String, reason: String, failures: Int,
      url: UInt64? = nil, host: String?
    ) {
      (self.since, self.failed, self.until, self.cause, self.code) = (since, failed, until, cause, code)
      (self.reason, self.failures, self.url, self.host) = (reason, failures, url, host)
    }

    /// The same, if it ends after `now`; at the file's time of modification at the latest.
    package func left(at now: Timestamp, modified: Int64) -> Rest? {
      var rest = self
      rest.until = min(until, Timestamp(seconds: modified))
      return rest.until <= now ? nil : rest
    }
  }

  /// With how many transfers at a time a server begins, as a browser has it.
  package static let firstTransfers = 4

  /// Scheme, host and port as in a URL; the scheme of a proxy is `proxy`.
  package let server: String
  /// One for all hosts, and one for each host that cannot reach it.
  package let rests: [Rest]
  package let answered: Timestamp?
  /// How many transfers at a time it bears; nil if nothing is known against it.
  package let bears: Int?
  /// Milliseconds between two requests; nil for none.
  package let pause: Int?

  package init(server: String, rests: [Rest] = [], answered: Timestamp? = nil, bears: Int? = nil, pause: Int? = nil) {
    (self.server, self.rests, self.answered, self.bears, self.pause) = (server, rests, answered, bears, pause)
  }

  /// Why a host may not ask it; nil if nothing is known.
  package func rest(of host: String) -> Rest? {
    rests.filter { $0.host == nil || $0.host == host }.max { $0.until < $1.until }
  }

  /// How far ahead a time may be that a clock of these workers has written, in seconds.
  private static let mostAhead: Int64 = 3600

  /// The same without times by a clock that was set back since: until they come, each run would wait for the whole
  /// rest anew.
  func believed(at now: Timestamp) -> ServerNote {
    let latest = now + Self.mostAhead
    return ServerNote(
      server: server, rests: rests.filter { max($0.since, $0.failed) <= latest },
      answered: answered.flatMap { $0 <= latest ? $0 : nil }, bears: bears, pause: pause)
  }

  private static let ports = ["http": 80, "https": 443, "ftp": 21, "ftps": 990, "sftp": 22]

  /// ``server`` as people write it: without the usual port.
  package var shown: String { Self.shown(server) }

  /// - Parameter server: in lower case.
  package static func shown(_ server: String) -> String {
    for (scheme, port) in ports where server.begins(with: "\(scheme)://") && server.ends(with: ":\(port)") {
      return String(server.dropLast(":\(port)".count))
    }
    return server
  }

  /// Whether a person who names `host`, perhaps with a port, means the server of a URL. Without one, any port is meant.
  package static func isMeant(by host: String, _ url: String) -> Bool {
    let parts = URLText(url)
    let named = parts.host.lowercasedASCII
    // The colons of an IPv6 address are in brackets.
    let last = named.utf8.lastIndex(of: UInt8(ascii: ":"))
    let colon = last.flatMap { named[$0...].utf8.contains(UInt8(ascii: "]")) ? nil : $0 }
    let bare = String(named[..<(colon ?? named.endIndex)])
    let usual = ports[parts.scheme.prefix(before: ":").lowercasedASCII].map { "\(bare):\($0)" } ?? named
    return ["\(host)", "[\(host)]"].contains { $0.exact == bare.exact }
      || host.exact == (colon == nil ? usual : named).exact
  }

  package var shownHost: String { escaped(URLText(shown).host) }

  package var isProxy: Bool { server.begins(with: "proxy://") }

  package var text: String {
    var lines = [("server", Fields(server))]
    for rest in rests {
      let fields = Fields("\(rest.since)").with("failed", rest.failed).with("until", rest.until)
        .with("cause", rest.cause).with("code", rest.code).with("failures", rest.failures)
        .with("url", rest.url.map { hexadecimal($0, digits: 16) }).with("host", rest.host).with("reason", rest.reason)
      lines.append(("rests", fields))
    }
    if let answered { lines.append(("answered", Fields("\(answered)"))) }
    for (key, number) in [("bears", bears), ("pause", pause)] {
      if let number { lines.append((key, Fields("\(number)"))) }
    }
    return lines.map { "\($0): \($1.text)\n" }.joined()
  }

  /// Reads the content of such a file. Lines that are not known are skipped.
  /// - Returns: nil if it is none.
  package init?(_ bytes: [UInt8]) {
    var (server, rests, answered): (String?, [Rest], Timestamp?) = (nil, [], nil)
    var numbers: [String: Int] = [:]
    guard bytes.last == 0x0A else { return nil }
    for (key, fields) in Fields.lines(of: String(decoding: bytes.dropLast(), as: UTF8.self)) {
      guard let fields else { return nil }
      let word = fields.words.first
      switch key {
      case "server": server = word
      case "rests":
        guard let since = fields.time, let until = fields.time("until"), let cause = fields["cause"] else { return nil }
        let rest = Rest(
          since: since, failed: fields.time("failed") ?? since, until: until, cause: cause, code: fields["code"] ?? "",
          reason: fields["reason"] ?? "", failures: fields.number("failures").map { Int(Int32(clamping: $0)) } ?? 1,
          url: fields["url"].flatMap { UInt64($0, radix: 16) }, host: fields["host"])
        rests.append(rest)
      case "answered": answered = fields.time
      case "bears", "pause": numbers[String(key)] = word.flatMap { decimal($0) }.map { Int(Int32(clamping: $0)) }
      default: break
      }
    }
    guard let server, !rests.isEmpty || answered != nil || !numbers.isEmpty else { return nil }
    self.init(server: server, rests: rests, answered: answered, bears: numbers["bears"], pause: numbers["pause"])
  }
}

/// The files in `servers/`. What they say is politeness: no job depends on them, nothing is flushed, and a worker can
/// do without them. A file's time of modification is the end of its server's rest; a person may make that earlier.
package struct ServerFiles: Sendable {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  package struct Seen: Sendable {
    package let name: FileName
    /// nil for one that is no worker's, or cannot be read.
    package let note: ServerNote?
    /// In seconds since the epoch.
    package let modified: Int64

    package init(name: FileName, note: ServerNote?, modified: Int64) {
      (self.name, self.note, self.modified) = (name, note, modified)
    }

    /// When a rest that it has ends, in seconds since the epoch: nothing makes it longer than the text says.
    package func end(of rest: ServerNote.Rest) -> Int64 { min(rest.until.seconds, modified) }
  }

  static let directory = OtherDirectory.servers.path
  /// A worker reads no more files.
  package static let most = 1000
  private static let longest = 1 << 16
  private static let kept: Int64 = 7 * 86_400

  /// The name of a server's file: scheme, host and port with hyphens between them. Where the host is too long for a
  /// name, or has bytes that do not belong into one, digits distinguish the file.
  package static func name(of server: String) -> FileName {
    let parts = server.utf8.split { !isAlphanumeric($0) && !"._-".utf8.contains($0) }.map { String(Substring($0)) }
    let (name, longest) = (FileName(parts.joined(separator: "-")), FileName.maximumLength - 64)
    let isWhole = parts.count == 3 && server.exact == "\(parts[0])://\(parts[1]):\(parts[2])".exact
    if isWhole, name.bytes.count <= longest { return name }
    return name.suffixed("-\(PayloadName.fingerprint(of: [server]).prefix(16))", limit: longest)
  }

  private func path(_ name: FileName) -> Path { Self.directory.appending(name) }

  /// When names in the directory last changed; nil where there is none.
  package func stamp() throws(SpoolError) -> FileStatus.Stamp? {
    try spool.system.statusIfPresent(spool.root, Self.directory)?.stamp
  }

  /// When the rest ends by a file's time; nil for one that is gone.
  package func modified(_ name: FileName) throws(SpoolError) -> Int64? {
    try spool.system.statusIfPresent(spool.root, path(name))?.modified
  }

  /// Those of the user whose workers run here. Others are as those that cannot be read.
  package func all(most: Int = most) throws(SpoolError) -> [Seen] {
    guard try stamp() != nil else { return [] }
    let file = try spool.system.open(spool.root, Self.directory, O_RDONLY | O_DIRECTORY)
    let stream = DirectoryStream(file)
    var found: [Seen] = []
    while found.count < most, let name = try stream.next() {
      if name.isIgnored { continue }
      if let seen = try read(name) { found.append(seen) }
    }
    return found
  }

  package func read(_ name: FileName) throws(SpoolError) -> Seen? {
    guard let status = try spool.system.statusIfPresent(spool.root, path(name)) else { return nil }
    var note: ServerNote?
    if status.isRegular, status.owner == spool.journalUser, status.size <= Self.longest {
      note = try spool.contents(path(name), limit: Self.longest).flatMap { ServerNote($0) }
      // One that was copied or renamed.
      if let server = note?.server, Self.name(of: server) != name { note = nil }
    }
    return Seen(name: name, note: note?.believed(at: spool.now()), modified: status.modified)
  }

  /// Replaces the server's file.
  /// - Parameter end: its time, in seconds since the epoch.
  package func write(_ note: ServerNote, end: Int64) throws(SpoolError) {
    let name = Self.name(of: note.server)
    try spool.system.makeDirectoryIfMissing(spool.root, Self.directory)
    try spool.write(Array(note.text.utf8), to: path(name), mode: 0o600, modified: end)
  }

  /// Writes what a host knows of a server, or removes the file if there is nothing to say. What other hosts cannot
  /// reach stays, and so does the rest of all hosts beside one of this host.
  /// - Parameter isOfAll: whether the rest that is saved, or ends, is that of all hosts.
  /// - Returns: the file as it is then; nil if there is none.
  package func save(_ note: ServerNote, of host: String, isOfAll: Bool) throws(SpoolError) -> Seen? {
    let (name, now) = (Self.name(of: note.server), spool.now())
    let last = try read(name)
    let others = (last?.note?.rests ?? []).filter { $0.host != host && !(isOfAll && $0.host == nil) }
      .compactMap { $0.left(at: now, modified: last?.modified ?? 0) }
    // A file that is too long would be nobody's.
    let most = 100
    let note = ServerNote(
      server: note.server, rests: note.rests + others.sorted { $0.until > $1.until }.prefix(most),
      answered: note.answered, bears: note.bears, pause: note.pause)
    if note.rests.isEmpty, note.bears == nil, note.pause == nil {
      if last != nil { try spool.system.unlinkIfPresent(spool.root, path(name)) }
      return nil
    }
    let seen = Seen(name: name, note: note, modified: note.rests.map(\.until.seconds).max() ?? now.seconds)
    if last?.note != note || last?.modified != seen.modified { try write(note, end: seen.modified) }
    return seen
  }

  /// Removes the files of some servers, so that their rests end.
  /// - Returns: how many there were.
  package func forget(where isMeant: (ServerNote) -> Bool) throws(SpoolError) -> Int {
    let meant = try all(most: .max).filter { $0.note.map(isMeant) ?? false }
    for seen in meant { try spool.system.unlinkIfPresent(spool.root, path(seen.name)) }
    return meant.count
  }

  /// Removes the files that have had nothing to say for a week.
  package func sweep() throws(SpoolError) {
    for seen in try all(most: .max) where seen.modified < spool.now().seconds - Self.kept {
      try spool.system.unlinkIfPresent(spool.root, path(seen.name))
    }
  }
}
