internal import CLinux
internal import Glibc
internal import Spool

/// Whether the names in a directory have changed between two looks at its times, which take a call each: for changes by
/// other hosts, which inotify does not report.
///
/// Changes by this worker count as well. They cannot be told from others, and a pass over names that are known is
/// cheap.
struct DirectoryChange {
  /// At the last look; nil before the first one, which is a change.
  private var stamp: FileStatus.Stamp??
  /// When ``stamp`` was first seen, in milliseconds.
  private var since: Int64 = 0
  /// Whether any further change would have given it another stamp.
  private var isSettled = false

  /// Milliseconds in which two changes may get the same time: network file systems count at least in seconds.
  private static let tick: Int64 = 1000

  /// - Parameter stamp: nil where there is no such directory.
  /// - Parameter now: in milliseconds, before the names are read again.
  /// - Returns: whether they have to be.
  mutating func note(_ stamp: FileStatus.Stamp?, at now: Int64) -> Bool {
    guard self.stamp == .some(stamp) else {
      (self.stamp, since, isSettled) = (stamp, now, false)
      return true
    }
    // What was changed after the last reading, in the same tick, did not change the stamp.
    let wasSettled = isSettled
    isSettled = now - since >= Self.tick
    return !wasSettled
  }
}

/// The changes in a spool that inotify(7) reports. They are only hints: its queue may overflow, and it says nothing
/// about other hosts. So the worker also scans.
@WorkerLoop final class SpoolWatch {
  struct Change: Hashable {
    let directory: Directory
    let name: FileName
  }

  struct News {
    var changes: [Change] = []
    /// The kernel dropped events, or a directory disappeared or came back, so only a scan shows the current state.
    var needsScan = false
    var areDefaultsNew = false
  }

  /// Why some changes are not reported: a limit of inotify(7) is reached.
  private(set) var limit: SpoolError?
  /// Its descriptor is one that the loop watches.
  private var queue: InotifyQueue?
  /// When it begins to watch, in milliseconds of the loop's clock.
  private let begins: Int64
  private let spool: Spool
  private var directories: [Int32: Directory] = [:]
  private var rootWatch: Int32?
  private var sign: WatchSign?
  private static let watched: [Directory] = [.new, .urgent, .partial, .cur, .standing]
  private static let defaults = FileName("defaults")
  private let runsAll: Bool

  /// - Parameter runsAll: whether the worker runs whatever is dropped.
  /// - Parameter delay: milliseconds before which nothing is watched. Linux takes 15 ms to close a queue that has
  ///   watched anything, for which a worker that soon ends need not wait.
  /// - Throws: ``SpoolError``, but not where only a limit is reached.
  init(_ spool: Spool, runsAll: Bool = true, delay: Int64 = 0) throws(SpoolError) {
    (self.spool, self.runsAll) = (spool, runsAll)
    begins = LoopExecutor.milliseconds() + delay
    try renew()
  }

  /// Watches what is not watched yet: at the start, and after a directory was removed and created again.
  func renew() throws(SpoolError) {
    // Without it, `spoolrun get` runs a worker of its own beside this one.
    do throws(SpoolError) { if runsAll { sign = try WatchSign(for: spool) ?? sign } } catch { sign = nil }
    limit = nil
    if queue == nil {
      guard LoopExecutor.milliseconds() >= begins else { return }
      do throws(SpoolError) { queue = try InotifyQueue(spool) } catch  where error.isInotifyLimit { limit = error }
      if let queue { WorkerLoop.executor.watched.append(queue.descriptor) }
    }
    let root = IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR
    rootWatch = try watch(nil, UInt32(root))
    directories = [:]
    for directory in Self.watched {
      // A file that is closed after writing, renamed into the directory or touched may have become runnable. A file
      // moved or removed from cur/ means that a person moved or removed the job. Creation is the only event for a link
      // and for anything that is not a regular file.
      let more = directory == .cur ? IN_MOVED_FROM | IN_DELETE : directory.takesDrops ? IN_CREATE : 0
      let mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR | more
      if let watch = try watch(directory, UInt32(mask)) { directories[watch] = directory }
    }
  }

  private func watch(_ directory: Directory?, _ mask: UInt32) throws(SpoolError) -> Int32? {
    do throws(SpoolError) { return try queue?.watch(directory, mask) } catch  where error.isInotifyLimit {
      limit = error
      return nil
    }
  }

  /// Whether this is a plain file that was just created. When it is closed after writing, there is another event.
  private func isBeingMade(_ directory: Directory, _ name: FileName) -> Bool {
    // It is gone or cannot be examined; the scan handles it.
    guard let status = try? spool.status(directory, name) else { return true }
    return status.isRegular && status.links == 1
  }

  /// All changes since the last call. Does not wait.
  func read() -> News {
    var news = News()
    guard let queue else {
      news.needsScan = limit == nil && LoopExecutor.milliseconds() >= begins
      return news
    }
    let size = 64 * 1024
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
    defer { buffer.deallocate() }
    while true {
      let count: Int
      do throws(SpoolError) {
        count = try queue.read(into: buffer)
      } catch {
        // The kernel may have dropped events.
        news.needsScan = true
        return news
      }
      guard count > 0 else { return news }
      var offset = 0
      while offset < count {
        let event = buffer.baseAddress! + offset
        let header = event.load(as: inotify_event.self)
        offset += MemoryLayout<inotify_event>.size + Int(header.len)
        let mask = Int32(bitPattern: header.mask)
        let bytes = UnsafeRawBufferPointer(start: event + MemoryLayout<inotify_event>.size, count: Int(header.len))
        // Not by a closure: each call of one would ask for the actor.
        let name = FileName(Array(bytes[..<(bytes.firstIndex(of: 0) ?? bytes.endIndex)]))
        if header.wd == rootWatch, mask & (IN_Q_OVERFLOW | IN_IGNORED) == 0, name == Self.defaults {
          news.areDefaultsNew = true
          continue
        }
        // Other files that were written or removed beside the directories mean nothing.
        if header.wd == rootWatch, mask & IN_ISDIR == 0, mask & (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_DELETE) != 0 {
          continue
        }
        guard let directory = directories[header.wd], mask & (IN_Q_OVERFLOW | IN_IGNORED) == 0 else {
          news.needsScan = true
          continue
        }
        guard header.len > 0 else { continue }
        if mask & IN_CREATE != 0, isBeingMade(directory, name) { continue }
        news.changes.append(Change(directory: directory, name: name))
      }
    }
  }
}
