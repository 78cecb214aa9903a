internal import CLinux
internal import Glibc
internal import SystemPackage

extension SpoolError {
  /// Errors that a single file can cause: it is immutable or append-only (chattr(1)), a mount point, a running program,
  /// or another user's in a sticky directory, or cannot be read.
  fileprivate var mayConcernOneFile: Bool {
    // Not EROFS, which nearly always concerns all files: a single file that is mounted read-only says EBUSY to rename.
    isUnreadable || [.notPermitted, .resourceBusy, .textFileBusy].contains(errno)
  }
}

extension Spool {
  /// Whether `error`, which work on one file in `directory` met, leaves the other files alone: the directories that all
  /// jobs pass through can be written to.
  package func concernsOneFile(_ error: SpoolError, in directory: Directory) -> Bool {
    guard error.mayConcernOneFile else { return false }
    for directory in Set([directory, .cur, .tmp]) {
      do throws(SpoolError) { try system.mayChange(root, Path(directory)) } catch {
        guard directory.isOptional, error.errno == .noSuchFileOrDirectory else { return false }
      }
    }
    return true
  }
}
