internal import Glibc
internal import SystemPackage

/// What a ``Spool/sweep(_:report:)`` may remove.
package struct SweepOptions: Sendable {
  /// Say what would be done.
  package var isDry = false
  /// Seconds after which a file in `tmp/` is nobody's any more, as in a maildir.
  package var staleAge: Int64 = 36 * 3600
  /// Seconds for which data without a job is left alone: its job may be in a person's editor.
  package var grace: Int64 = 36 * 3600
  /// Seconds after which a receipt goes; nil: never.
  package var keepDone: Int64?
  /// Whether to read the receipts and look for their payloads.
  package var readsReceipts = false

  package init() {}
}

/// Something that a sweep removed, or found and left alone.
package struct SweepFinding: Sendable {
  package enum Kind: String, Sendable {
    /// Data in `partial/` or set aside in `failed/` whose job is gone.
    case orphan
    /// A file in `tmp/` that nobody has written to for 36 hours.
    case stale
    /// A record in `failed/` of something that is gone.
    case record
    case receipt
    /// A receipt whose payload is not there: left alone.
    case missing
    /// Something in `done/` that says of no payload: left alone.
    case noReceipt = "no-receipt"
    /// Something in `cur/` that no worker will take: left alone.
    case stray
    /// A leftover that the kernel does not let be removed (chattr(1)): it stays.
    case stuck

    package var isRemoved: Bool {
      switch self {
      case .orphan, .stale, .record, .receipt: true
      case .missing, .noReceipt, .stray, .stuck: false
      }
    }
  }

  package let kind: Kind
  /// `DIRECTORY/NAME`, safe for a terminal.
  package let place: String
  package let bytes: Int64
  /// For ``Kind/missing``: the payload's path, safe for a terminal.
  package let output: String?
  /// For ``Kind/stuck``: why it stays.
  package let obstacle: SpoolError?

  init(_ kind: Kind, _ path: Path, bytes: Int64 = 0, output: String? = nil, obstacle: SpoolError? = nil) {
    self.kind = kind
    place = path.display
    self.bytes = bytes
    self.output = output
    self.obstacle = obstacle
  }
}

extension Spool {
  /// Removes what no job needs: data and records whose job is gone, old files in `tmp/`, old receipts if asked to. Never a job, never a payload.
  /// - Parameter report: called for each finding, after the removal.
  package func sweep(_ options: SweepOptions, report: (SweepFinding) -> Void) throws(SpoolError) {
    let now = Timestamp.now()
    try sweepData(options, now, report)
    try sweepTemporaries(options, now, report)
    try sweepFailed(options, now, report)
    if options.readsReceipts || options.keepDone != nil { try sweepReceipts(options, now, report) }
    if options.readsReceipts {
      for name in try list(.cur) where ClaimName(name) == nil { report(SweepFinding(.stray, Path(.cur, name))) }
    }
  }

  private func sweepData(_ options: SweepOptions, _ now: Timestamp, _ report: (SweepFinding) -> Void) throws(SpoolError)
  {
    let stream = try stream(.partial)
    while let name = try stream.next() {
      guard !name.isIgnored, name.isData else { continue }
      let path = Path(.partial, name)
      // Two looks that cost little and settle nearly all; the one that counts is under the lock of the data.
      guard try isOlder(path, than: options.grace, now), try status(.partial, name.dataOwner) == nil else { continue }
      try sweepOrphan(path, of: name, in: .partial, options, report)
    }
  }

  private func sweepOrphan(
    _ path: Path, of name: FileName, in directory: Directory, _ options: SweepOptions, _ report: (SweepFinding) -> Void
  ) throws(SpoolError) {
    do throws(SpoolError) {
      if let bytes = try removeOrphan(path, of: name.dataOwner, isDry: options.isDry) {
        report(SweepFinding(.orphan, path, bytes: bytes))
      }
    } catch  where concernsOneFile(error, in: directory) {
      report(SweepFinding(.stuck, path, obstacle: error))
    }
  }

  private func sweepTemporaries(_ options: SweepOptions, _ now: Timestamp, _ report: (SweepFinding) -> Void)
    throws(SpoolError)
  {
    let stream = try stream(.tmp)
    var time = now
    var isTimeKnown = options.isDry
    while let name = try stream.next() {
      // A leading dot is ignored here as everywhere, but for a worker's own.
      guard !name.isIgnored || isOwnMark(name) else { continue }
      let path = Path(.tmp, name)
      guard try isOlder(path, than: options.staleAge, time) else { continue }
      if !isTimeKnown {
        // Old by our clock: ask the one that stamped it, which may be another machine's.
        time = try fileSystemTime()
        isTimeKnown = true
        guard try isOlder(path, than: options.staleAge, time) else { continue }
      }
      guard let status = try status(.tmp, name), !status.isDirectory else { continue }
      try remove(path, in: .tmp, options, report, SweepFinding(.stale, path, bytes: status.size))
    }
  }

  /// What a worker left that died while it asked for the time, and ``shortageMark``.
  private func isOwnMark(_ name: FileName) -> Bool {
    name == Self.shortageMark || name.bytes.starts(with: Array(".clock:".utf8))
  }

  private func sweepFailed(_ options: SweepOptions, _ now: Timestamp, _ report: (SweepFinding) -> Void)
    throws(SpoolError)
  {
    let stream = try stream(.failed)
    // Of many failed jobs only what may be a leftover, or the subject of a record whose name was cut.
    var names: [FileName] = []
    while let name = try stream.next() {
      if !name.isIgnored, name.isData || name.hasRecordSuffix || name.hasLongRecord { names.append(name) }
    }
    let leftovers = try leftovers(in: names)
    let records = leftovers.isEmpty ? [] : Set(names.map(\.record))
    for name in names where leftovers.contains(name) {
      let path = Path(.failed, name)
      if name.isData {
        guard try isOlder(path, than: options.grace, now) else { continue }
        try sweepOrphan(path, of: name, in: .failed, options, report)
      } else if !records.contains(name), try status(.failed, name.recordSubject) == nil,
        let status = try status(.failed, name)
      {
        // It is written before what it is about is moved here, perhaps just now.
        let grace = max(options.grace, Self.settlingTime)
        guard try isOlder(path, than: grace, now, sinceRename: false) else { continue }
        try remove(path, in: .failed, options, report, SweepFinding(.record, path, bytes: status.size))
      }
    }
  }

  private func sweepReceipts(_ options: SweepOptions, _ now: Timestamp, _ report: (SweepFinding) -> Void)
    throws(SpoolError)
  {
    var roots: [String: OutputRoot] = [:]
    for name in try list(.done) {
      let path = Path(.done, name)
      // The receipt is the last that was written to the file.
      var isOld = false
      if let age = options.keepDone { isOld = try isOlder(path, than: age, now, sinceRename: false) }
      guard isOld || options.readsReceipts else { continue }
      guard let job = JobName(name) == nil ? nil : try job(.done, name), let receipt = job.journal.receipt else {
        if try status(.done, name) != nil { report(SweepFinding(.noReceipt, path)) }
        continue
      }
      if isOld {
        let bytes = try status(.done, name)?.size ?? 0
        try remove(path, in: .done, options, report, SweepFinding(.receipt, path, bytes: bytes))
      } else if try !hasPayload(receipt, &roots) {
        let root = receipt.directory.map { escaped($0) + "/" } ?? "\(Directory.files.rawValue)/"
        report(SweepFinding(.missing, path, output: root + escaped(receipt.output)))
      }
    }
  }

  private func hasPayload(_ receipt: Journal.Receipt, _ roots: inout [String: OutputRoot]) throws(SpoolError) -> Bool {
    guard let output = OutputPath(receipt.output) else { return false }
    let key = receipt.directory ?? ""
    do throws(SpoolError) {
      if roots[key] == nil { roots[key] = try OutputRoot(receipt.directory, spool: self) }
      return try roots[key]?.status(output)?.isRegular ?? false
    } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
      return false
    } catch  where error.errno == .tooManySymbolicLinkLevels || error.errno == .permissionDenied {
      // Somebody moved a directory and left a link, or shut it: not for us to follow, but nothing says that the payload is gone.
      return true
    }
  }

  /// Whether nobody wrote to the file for `seconds`, nor renamed it, if that counts; false for what is not there.
  private func isOlder(_ path: Path, than seconds: Int64, _ now: Timestamp, sinceRename: Bool = true) throws(SpoolError)
    -> Bool
  {
    if seconds <= 0 { return true }
    do throws(SpoolError) {
      let status = try system.status(root, path)
      // `cp -p` gives a new file an old time of modification, but not of change.
      return Self.lastChange(status, countsRenames: sinceRename, at: now) <= now.seconds - seconds
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// Removes the file and reports it as `finding`, unless it was gone already.
  private func remove(
    _ path: Path, in directory: Directory, _ options: SweepOptions, _ report: (SweepFinding) -> Void,
    _ finding: SweepFinding
  ) throws(SpoolError) {
    do throws(SpoolError) {
      if !options.isDry { try system.unlink(root, path) }
      report(finding)
    } catch  where error.errno == .noSuchFileOrDirectory {
    } catch  where concernsOneFile(error, in: directory) {
      report(SweepFinding(.stuck, path, obstacle: error))
    }
  }
}
