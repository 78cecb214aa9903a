internal import Glibc
internal import SystemPackage

/// What a person's `get`s leave in a directory of the person's own when nothing else is left of them: where their
/// spools are, and what was fetched.
package struct GetRecords: Sendable {
  /// By which the person's own spool is known. One that came in an archive, or that took the place of another, has
  /// another inode or another token.
  struct Entry: Equatable {
    let inode: UInt64
    let token: String
    /// What ``GetRecords/mount(of:)`` said; nil if it is not known.
    let mount: String?
    /// The inode of the directory that it is in; nil if it is not known.
    let above: UInt64?
  }

  /// By the names of jobs.
  package typealias Receipts = [FileName: Journal.Done]

  package let location: String
  let system: System

  /// - Parameter location: an absolute path. The directories above it exist.
  package init(_ location: String, system: System = System()) { (self.location, self.system) = (location, system) }

  /// Makes the directories of the records, as each change does.
  package func make() throws(SpoolError) {
    for path in [location, "\(location)/gets", "\(location)/got"] {
      try system.makeDirectoryIfMissing(AT_FDCWD, Path(path))
    }
  }

  private func path(_ kind: String, of directory: String) -> String {
    "\(location)/\(kind)/\(PayloadName.fingerprint(of: [directory]).prefix(32))"
  }

  // MARK: where the spools are

  private static let longest = 1 << 20
  /// Spools of one path.
  private static let most = 64

  /// What tells file systems apart that are mounted at one path, by this host or by others that have the same home.
  static func mount(of directory: FileStatus) -> String { "\(WorkerID.current().boot):\(directory.device)" }

  /// The spools of this path: other hosts, and other mounts, have others.
  func entries(of directory: String) throws(SpoolError) -> [Entry] {
    try read(path("gets", of: directory)).filter { $0.directory.exact == directory.exact }.map(\.entry)
  }

  private func read(_ path: String) throws(SpoolError) -> [(directory: String, entry: Entry)] {
    let bytes = try ReplacedFile.read(path, limit: Self.longest, system: system) ?? []
    return String(decoding: bytes, as: UTF8.self).split(at: "\n").compactMap { line in
      guard let fields = Fields(parsing: line), let directory = fields["directory"],
        let inode = fields.inode("inode"), let token = fields["token"]
      else { return nil }
      let above = fields.inode("above")
      return (directory, Entry(inode: inode, token: token, mount: fields["mount"], above: above))
    }
  }

  /// Durably: without it, the spool would be a stranger's after a power cut.
  func save(_ entry: Entry, of directory: String) throws(SpoolError) {
    try change(directory) { entries in entries.filter { $0.inode != entry.inode || $0.mount != entry.mount } + [entry] }
    try flush("gets")
  }

  private func flush(_ kind: String) throws(SpoolError) {
    try system.open(AT_FDCWD, Path("\(location)/\(kind)"), O_RDONLY | O_DIRECTORY).fsync()
  }

  func forget(_ entry: Entry, of directory: String) throws(SpoolError) {
    try change(directory) { entries in entries.filter { $0 != entry } }
  }

  private func change(_ directory: String, _ changed: ([Entry]) -> [Entry]) throws(SpoolError) {
    try alone { () throws(SpoolError) in
      let old = try entries(of: directory)
      let new = Array(changed(old).suffix(Self.most))
      if new == old { return }
      let path = path("gets", of: directory)
      if new.isEmpty { return try system.unlinkIfPresent(AT_FDCWD, Path(path)) }
      let lines = new.map { entry in
        Fields().with("inode", entry.inode).with("token", entry.token).with("mount", entry.mount)
          .with("above", entry.above).with("directory", directory).text + "\n"
      }
      try ReplacedFile.write(Array(lines.joined().utf8), to: path, system: system)
    }
  }

  /// The directories that have a spool of this person's, or had one when they were last seen.
  package func directories() throws(SpoolError) -> [String] {
    var found: [String] = []
    for name in try system.namesIfPresent(in: AT_FDCWD, Path("\(location)/gets")) {
      let path = "\(location)/gets/\(String(decoding: name.bytes, as: UTF8.self))"
      guard !name.isIgnored, !name.bytes.contains(UInt8(ascii: "~")), let directory = try read(path).first?.directory
      else { continue }
      found.append(directory)
    }
    return found.sorted { $0.exact < $1.exact }
  }

  /// The directory that this was the spool of; nil if it was none of the person's.
  func directory(of inode: UInt64, _ token: String) throws(SpoolError) -> String? {
    for directory in try directories() {
      let isKnown = try entries(of: directory).contains { $0.inode == inode && $0.token.exact == token.exact }
      if isKnown { return directory }
    }
    return nil
  }

  /// The file about the spools of a directory that was there since this host has started, and is gone; nil for others.
  package func note(ofLost directory: String) throws(SpoolError) -> String? {
    let boot = WorkerID.current().boot
    guard try entries(of: directory).contains(where: { $0.mount?.begins(with: "\(boot):") == true }),
      try orNil(system.status(AT_FDCWD, Path(directory)), on: .noSuchFileOrDirectory, .notDirectory) == nil
    else { return nil }
    return path("gets", of: directory)
  }

  /// Changes a record while no other command does. The lock is a file's: NFS keeps none of directories between hosts.
  /// - Throws: ``SpoolError``, EAGAIN where another command has it for long, such as one that is stopped.
  private func alone(_ body: () throws(SpoolError) -> Void) throws(SpoolError) {
    try make()
    let path = Path("\(location)/gets/.lock")
    var lock = try system.create(AT_FDCWD, path, O_RDWR | O_NOFOLLOW)
    var isAlone = true
    do throws(SpoolError) {
      isAlone = try lock.lock(within: 5000, every: 5)
    } catch  where error.call == .lock {
      // Without locks, two commands that end and begin in one directory at one moment may miss each other.
    }
    if isAlone { return try body() }
    throw SpoolError(
      call: .lock, path: path.display, errno: .wouldBlock, reason: "another command has had it for 5 seconds")
  }

  // MARK: what was fetched

  /// What a `get` has fetched whose spool is gone.
  package struct Fetched: Sendable {
    package let job: FileName
    /// That answered, without its query and login; nil if an older version noted it.
    package let url: String?
    /// That was asked for, without its query and login; nil if it is not known.
    package let asked: String?
    /// What of the request is not noted, because it may be secret; nil if that is nothing, or not known.
    package let lacks: String?
    package let done: Journal.Done
    /// Whether a spool of a get still has the job.
    package var isOfSpool = false
    /// Whether the command line has its path, and not only a directory above it.
    package var isNamed = false

    /// nil for a job that is not done.
    package init?(_ job: FileName, _ text: JobText) {
      guard let done = text.journal.publication.done else { return nil }
      self.init(
        job, url: text.journal.data.version?.resource?.place, asked: text.request.urls.first?.text,
        lacks: Self.secrets(of: text.request), done)
    }

    /// What of a request is not noted, because it may be secret; nil if that is nothing.
    package static func secrets(of request: JobRequest) -> String? {
      let asked = request.urls.first?.text ?? ""
      let (place, all) = (URLText(asked).place, asked.prefix(before: "#"))
      let secrets = [
        ("query", all.utf8.count > place.utf8.count), ("login", shownURL(asked).exact != String(place).exact),
        ("header", !request.headers.isEmpty),
      ].filter(\.1).map(\.0)
      return secrets.isEmpty ? nil : secrets.joined(separator: ",")
    }

    fileprivate init(_ job: FileName, url: String?, asked: String?, lacks: String?, _ done: Journal.Done) {
      // The path of what answered may be a secret (``Resource/hidden(_:)``).
      let isHidden = url?.utf8.contains(UInt8(ascii: "#")) ?? false
      (self.job, self.url, self.lacks, self.done) = (job, url, lacks, done)
      self.asked = isHidden ? nil : (asked ?? url).map { shownURL($0) }
    }
  }

  package func receipts(in directory: String) throws(SpoolError) -> Receipts {
    var receipts = Receipts()
    for one in try fetched(in: directory) { receipts[one.job] = one.done }
    return receipts
  }

  /// - Parameter directory: the real path of the files' directory.
  package func fetched(in directory: String) throws(SpoolError) -> [Fetched] {
    try lines(in: directory).compactMap { job, fields in
      guard let output = fields["output"], let size = fields.number("size") else { return nil }
      let done = Journal.Done(
        receipt: Journal.Receipt(
          output: output, directory: directory, unproven: fields["unproven"], isDelivered: fields["delivered"] != nil),
        verified: Journal.Verified(size: size, Digests(fields), unproven: fields["unproven"]), time: fields.time)
      return Fetched(job, url: fields["url"], asked: fields["asked"], lacks: fields["lacks"], done)
    }
  }

  /// Compares a file with what was fetched, like ``OutputRoot/check(_:_:note:)``.
  /// - Parameter directory: where the file is; nil for where it was fetched to.
  package static func check(
    _ fetched: Fetched, in directory: String? = nil, note: (UnsafeRawBufferPointer) -> Void = { _ in }
  ) throws(SpoolError) -> PayloadCheck {
    let system = System()
    let receipt = fetched.done.receipt
    guard let directory = directory ?? receipt.directory, let output = OutputPath(receipt.output) else {
      return .missing
    }
    do throws(SpoolError) {
      let root = try system.open(AT_FDCWD, Path(directory), O_RDONLY | O_DIRECTORY)
      let file = try system.openBeneath(root.number, Path(output.text), O_RDONLY | Spool.jobFlags)
      let status = try file.status()
      guard status.isRegular else { return .missing }
      return try ExistingOutput(file: file.shared(), status: status).check(fetched.done.verified, note)
    } catch  where [.noSuchFileOrDirectory, .notDirectory].contains(error.errno) {
      return .missing
    }
  }

  /// Forgets those whose files are not there any more.
  /// - Returns: their outputs; nil if nothing at all is in the directory, such as where a disk is not mounted.
  package func forgetMissing(in directory: String, isDry: Bool) throws(SpoolError) -> [String]? {
    if try system.names(in: AT_FDCWD, Path(directory), 0).isEmpty { return nil }
    var missing: [String] = []
    try alone { () throws(SpoolError) in
      var left: [Fields] = []
      for (_, fields) in try lines(in: directory) {
        if let output = fields["output"], try system.statusIfPresent(AT_FDCWD, Path("\(directory)/\(output)")) == nil {
          missing.append(output)
        } else {
          left.append(fields)
        }
      }
      if isDry || missing.isEmpty { return }
      try write(left, of: directory)
    }
    return missing
  }

  private func lines(in directory: String) throws(SpoolError) -> [(job: FileName, fields: Fields)] {
    let bytes = try ReplacedFile.read(path("got", of: directory), limit: 1 << 30, system: system) ?? []
    // Without a last line that another command is appending, or that a crash has cut.
    let whole = bytes[..<(bytes.lastIndex(of: 0x0A) ?? 0)]
    let all = String(decoding: whole, as: UTF8.self).split(at: "\n").compactMap { line in
      Fields(parsing: line).flatMap { fields in fields["job"].map { (job: FileName($0), fields: fields) } }
    }
    let last = Dictionary(zip(all.map(\.job), all.indices)) { $1 }
    return all.indices.filter { last[all[$0].job] == $0 }.map { all[$0] }
  }

  /// Notes the receipts of these jobs, in place of older ones of the same jobs.
  func note(_ fetched: [Fetched], in directory: String) throws(SpoolError) {
    let new = fetched.map { (one) -> (job: FileName, fields: Fields) in
      let (name, done) = (String(decoding: one.job.bytes, as: UTF8.self), one.done)
      let fields = Fields(done.time.map { "\($0)" } ?? "-").with("output", done.receipt.output)
        .with("size", done.verified.size).with(done.verified.digests).with("unproven", done.verified.unproven)
        .with("delivered", done.receipt.isDelivered ? "yes" : nil).with("url", one.url).with("asked", one.asked)
        .with("lacks", one.lacks).with("job", name)
      return (FileName(name), fields)
    }
    if new.isEmpty { return }
    let names = Set(new.map(\.job))
    // Hosts with one home may do so at the same time.
    try alone { () throws(SpoolError) in
      if try append(Self.bytes(of: new.map(\.fields)), of: directory) { return }
      let all = try lines(in: directory).filter { !names.contains($0.job) } + new
      try write(all.map(\.fields), of: directory)
    }
    try flush("got")
  }

  /// From this size on, lines are appended, and all is written anew only when the size passes a power of two: otherwise
  /// each command would write the lines of all before it.
  private static let large: Int64 = 1 << 16

  /// - Returns: false where all has to be written anew.
  private func append(_ bytes: [UInt8], of directory: String) throws(SpoolError) -> Bool {
    let record = Path(path("got", of: directory))
    let flags = O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY
    guard let file = try orNil(system.open(AT_FDCWD, record, flags).shared(), on: .noSuchFileOrDirectory) else {
      return false
    }
    let status = try file.status()
    let size = status.size
    guard status.isRegular, size >= Self.large,
      size.leadingZeroBitCount == (size + Int64(bytes.count)).leadingZeroBitCount
    else { return false }
    var isWhole = false
    try file.readBlocks(UInt64(size - 1)..<UInt64(size)) { (last, _) throws(SpoolError) in isWhole = last[0] == 0x0A }
    guard isWhole else { return false }
    try file.write(bytes, at: size)
    try file.fdatasync()
    return true
  }

  private static func bytes(of lines: [Fields]) -> [UInt8] { Array(lines.map { $0.text + "\n" }.joined().utf8) }

  private func write(_ lines: [Fields], of directory: String) throws(SpoolError) {
    let path = path("got", of: directory)
    if lines.isEmpty { return try system.unlinkIfPresent(AT_FDCWD, Path(path)) }
    try ReplacedFile.write(Self.bytes(of: lines), to: path, system: system)
  }
}
