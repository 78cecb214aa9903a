internal import Glibc
internal import SystemPackage

/// A non-blocking inotify(7) instance for a spool's directories.
package struct InotifyQueue: Sendable {
  private let file: SharedFile
  private let spool: Spool

  /// - Throws: ``SpoolError``, EMFILE where the user has no instances left.
  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    file = try spool.system.openInotify().shared()
  }

  /// Readable when there are events; closed with the last copy of this value.
  package var descriptor: Int32 { file.number }

  /// Watches `directory`, or the spool's own for nil.
  /// - Parameter mask: the events, as in inotify(7).
  /// - Returns: the watch descriptor; nil when the directory does not exist now.
  /// - Throws: ``SpoolError``, ENOSPC where the user has no watches left.
  @discardableResult package func watch(_ directory: Directory?, _ mask: UInt32) throws(SpoolError) -> Int32? {
    // inotify_add_watch takes no directory descriptor. Through /proc it follows the one that is open; without /proc,
    // as in some chroots, it goes by name.
    let open = "/proc/self/fd"
    let hasProc = (try? spool.system.status(AT_FDCWD, Path(open))) != nil
    let base = hasProc ? "\(open)/\(spool.root)" : spool.location
    return try orNil(
      file.addWatch(Path("\(base)/\(directory?.rawValue ?? ".")"), mask), on: .noSuchFileOrDirectory, .notDirectory)
  }

  /// Reads events, as struct inotify_event (inotify(7)), into `buffer`; does not wait.
  /// - Returns: how many bytes there are; 0 for no event.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    try orNil(file.readEvents(into: buffer), on: .wouldBlock) ?? 0
  }
}

extension System {
  fileprivate func openInotify() throws(SpoolError) -> OwnedFile {
    let path = Path("inotify")
    let number = try call(.open, path.display) { _ in Int(kernel.openInotify()) }
    return OwnedFile(Int32(number), path, self)
  }
}

extension SpoolError {
  /// This user, or this process, has no more instances or watches (inotify_init1(2), inotify_add_watch(2)).
  package var isInotifyLimit: Bool { call == .watch && errno == .noSpace || isShortage }
}

extension SharedFile {
  fileprivate func addWatch(_ path: Path, _ mask: UInt32) throws(SpoolError) -> Int32 {
    let watch = try system.call(.watch, path.display) { _ in
      path.withCString { Int(system.kernel.addWatch(number, $0, mask)) }
    }
    return Int32(watch)
  }

  fileprivate func readEvents(into buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    // Never shortened by a hook: a buffer that has no room for an event is EINVAL (inotify(7)).
    try system.call(.read, path.display) { _ in system.kernel.read(number, buffer) }
  }
}
