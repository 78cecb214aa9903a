internal import CLinux
internal import Glibc

/// The parts of stat(2) that the spool needs.
package struct FileStatus: Sendable {
  /// The file system's number (st_dev in stat(3type)).
  package let device: UInt64
  package let inode: UInt64
  package let size: Int64
  package let links: UInt64
  package let owner: UInt32
  /// The lower twelve bits of the mode.
  let permissions: UInt32
  /// Seconds since the epoch.
  package let modified: Int64
  package var modifiedNanoseconds: Int { stamp.modified.nanoseconds }
  /// Seconds since the epoch of the last change of content or name.
  package let changed: Int64
  package let isRegular: Bool
  package let isDirectory: Bool
  package let isLink: Bool
  /// Size and times, which change with the contents.
  package let stamp: Stamp

  /// What every change of a file's content changes. Nobody can set the time of the last change (inode(7), st_ctim), but
  /// two changes may be within one tick of the clock that it is read from.
  package struct Stamp: Sendable, Equatable {
    package let size: Int
    let modified: Time
    let changed: Time

    struct Time: Sendable, Equatable {
      let seconds: Int
      let nanoseconds: Int

      init(_ time: timespec) { (seconds, nanoseconds) = (time.tv_sec, time.tv_nsec) }
    }

    /// Whether both were modified at the same time, as far as both file systems show it: SFTP has only seconds.
    func isOfSameTime(as other: Stamp) -> Bool {
      modified.seconds == other.modified.seconds
        && (modified.nanoseconds == other.modified.nanoseconds || modified.nanoseconds == 0
          || other.modified.nanoseconds == 0)
    }
  }

  init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    links = UInt64(status.st_nlink)
    owner = status.st_uid
    permissions = status.st_mode & 0o7777
    modified = Self.seconds(status.st_mtim)
    changed = Self.seconds(status.st_ctim)
    stamp = Stamp(size: status.st_size, modified: Stamp.Time(status.st_mtim), changed: Stamp.Time(status.st_ctim))
    isRegular = status.st_mode & UInt32(Glibc.S_IFMT) == UInt32(Glibc.S_IFREG)
    isDirectory = status.st_mode & UInt32(Glibc.S_IFMT) == UInt32(Glibc.S_IFDIR)
    isLink = status.st_mode & UInt32(Glibc.S_IFMT) == UInt32(Glibc.S_IFLNK)
  }

  /// Limited, so that sums cannot overflow: some file systems keep any time that a stranger gives utimensat(2).
  private static func seconds(_ time: timespec) -> Int64 { min(max(Int64(time.tv_sec), -1 << 40), 1 << 40) }

  /// Whether the file or a name of it was changed after the last write to `other`.
  package func wasChanged(after other: FileStatus) -> Bool {
    let (changed, written) = (stamp.changed, other.stamp.modified)
    // Some file systems have only seconds.
    if changed.seconds != written.seconds || changed.nanoseconds == 0 || written.nanoseconds == 0 {
      return changed.seconds >= written.seconds
    }
    return changed.nanoseconds > written.nanoseconds
  }

  package func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }

  var file: [UInt64] { [device, inode] }
}

/// What the times of files mean. The clock that set them may be wrong: a dropper's, another host's, or this host's
/// earlier.
extension FileStatus {
  /// Seconds for which a file must not have changed where leases cannot show writers. A file without its last newline
  /// is left alone as long.
  package static let settlingTime: Int64 = 10

  /// Whether a file with several names may have got or lost one just now (link(2) sets the time of the last change).
  /// Then whoever moves it is about to remove its former name, so nobody else may remove the other one.
  func mayBeMoving(at now: Timestamp) -> Bool {
    changed > now.seconds - Self.settlingTime && changed <= now.seconds + Self.settlingTime
  }

  /// Whether a file was changed just now: its times are at most ``settlingTime`` ago or ahead. A time further ahead was
  /// copied (`cp -p`), or set by a clock that is wrong.
  func isYoung(at now: Timestamp) -> Bool { youth(at: now) != nil }

  /// When a file that was changed just now was changed last, in seconds since the epoch; nil if it is not young.
  private func youth(at now: Timestamp) -> Int64? {
    [modified, changed].filter { $0 > now.seconds - Self.settlingTime && $0 <= now.seconds + Self.settlingTime }.max()
  }

  /// When a file that may still be written has not changed for ``settlingTime``, in seconds since the epoch. One that
  /// is old already, and in use, is looked at again after as long.
  func endOfRest(at now: Timestamp) -> Int64 { (youth(at: now) ?? now.seconds) + Self.settlingTime }

  /// When a file was last changed, in seconds since the epoch. A time more than a day ahead cannot be true and does not
  /// count; now where none is left.
  /// - Parameter countsRenames: whether the time of the last change of its name or mode counts as well as that of its
  ///   content.
  package func lastChange(countsRenames: Bool, at now: Timestamp) -> Int64 {
    let latest = now.seconds + 86_400
    if modified > latest { return changed > latest ? now.seconds : changed }
    return countsRenames && changed <= latest ? max(modified, changed) : modified
  }
}
