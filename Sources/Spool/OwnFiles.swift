internal import Glibc
internal import SystemPackage

// Files and directories of a spool that are neither jobs nor their data: hooks, the workers' notes, and scratch files.

/// A program in the spool's `hooks/`.
package enum Hook: Sendable {
  case runnable(String)
  /// Why it is not run: another user could have written it, or it is no program.
  case refused(String)

  private static let directory = Path("hooks")

  /// Whether there may be hooks.
  package static func mayExist(in spool: Spool) throws(SpoolError) -> Bool { try spool.exists(Self.directory) }

  /// The hook `name`; nil where there is none.
  package static func find(_ name: String, in spool: Spool) throws(SpoolError) -> Hook? {
    let path = Path("hooks/\(name)")
    for (place, isProgram) in [(Self.directory, false), (path, true)] {
      guard let status = try spool.system.statusIfPresent(spool.root, place) else { return nil }
      guard isProgram ? status.isRegular : status.isDirectory else {
        return .refused("\(place.display) is not a \(isProgram ? "regular file" : "directory")")
      }
      guard status.owner == geteuid() || status.owner == 0 else {
        return .refused("\(place.display) belongs to another user")
      }
      guard status.permissions & 0o022 == 0 else {
        return .refused("\(place.display) can be written by others: chmod go-w it")
      }
      if isProgram, status.permissions & 0o111 == 0 {
        return .refused("\(place.display) is not executable: chmod +x it")
      }
    }
    guard try spool.isInPlace() else { return .refused("the spool's path now leads to another directory") }
    // Not by a descriptor of its own: an interpreter opens its script again, and looks at its name.
    return .runnable(spool.path(forChild: "hooks/\(name)"))
  }
}

/// The URL schemes that a spool's workers allow, for those that drop jobs. Only a hint: the worker decides.
package struct SchemeNote {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  private static let schemesPath = Path("protocols")
  /// Much more than the names of all schemes have.
  private static let mostSchemeBytes = 1024

  /// The schemes that the worker which started last allows; nil if these are the default ones.
  /// - Throws: ``SpoolError``, EACCES if this user may not know.
  package func read() throws(SpoolError) -> Set<String>? {
    guard let bytes = try spool.contents(Self.schemesPath, limit: Self.mostSchemeBytes) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    return Set(text.split(at: ", \n").map { $0.lowercasedASCII })
  }

  /// Notes which schemes a worker allows that starts now. Writes only if that has changed.
  /// - Parameter schemes: nil for the default ones.
  package func write(_ schemes: Set<String>?) throws(SpoolError) {
    guard try read() != schemes else { return }
    guard let schemes else { return try spool.system.unlink(spool.root, Self.schemesPath) }
    let temporary = spool.temporary(FileName("protocols"))
    // Users who may drop jobs may read it, as far as the umask allows.
    let file = try spool.system.createNew(spool.root, temporary, mode: 0o644)
    try file.write(Array((schemes.sorted().joined(separator: ",") + "\n").utf8), at: 0)
    try spool.system.rename(spool.root, temporary, Self.schemesPath)
  }
}

/// A file whose presence says that a run has reported a full disk. Without it, cron would mail the report each
/// minute. It is in `tmp/`, so it is removed after 36 hours, and the next run reports the disk again.
package struct ShortageMark {
  static let name = FileName(".disk-short")
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Notes that the disk is full.
  /// - Returns: whether it was not noted before; also true if it cannot be noted.
  package func leave() -> Bool {
    do throws(SpoolError) {
      _ = try spool.system.createNew(spool.root, Path(.tmp, Self.name))
      return true
    } catch {
      return error.errno != .fileExists
    }
  }

  /// Takes ``leave()`` back when there is space again.
  package func remove() {
    // A mark that cannot be removed here is removed after 36 hours.
    try? spool.system.unlink(spool.root, Path(.tmp, Self.name))
  }
}

/// A file in the spool's `tmp/` that another program reads or writes, by its path. It is removed when it is let go of;
/// a worker that dies leaves it to `spoolrun clean`.
package final class ScratchFile: Sendable {
  package let path: String
  private let file: SharedFile
  private let spool: Spool

  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    file = try spool.system.createNew(
      spool.root, spool.temporary(FileName("standing"))
    ).shared()
    path = spool.path(forChild: String(decoding: file.path.bytes, as: UTF8.self))
  }

  deinit {
    // What cannot be removed is removed by the sweep.
    try? spool.system.unlink(spool.root, file.path)
    try? file.close()
  }

  package func write(_ bytes: [UInt8], at offset: Int64) throws(SpoolError) { try file.write(bytes, at: offset) }

  package func clear() throws(SpoolError) { try file.truncate(to: 0) }

  package func contents(limit: Int) throws(SpoolError) -> [UInt8] { try file.read(limit: limit) }
}
