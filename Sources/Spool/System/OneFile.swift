internal import CLinux
internal import Glibc
internal import SystemPackage

extension SpoolError {
  /// What a single file can bring about: it is immutable or append-only (chattr(1)), a mount of its own, running, another user's in a sticky directory.
  fileprivate var mayConcernOneFile: Bool {
    // Not EROFS, which is nearly always all files': where a single one is mounted so, its rename says EBUSY.
    [.notPermitted, .permissionDenied, .resourceBusy, .textFileBusy, .tooManySymbolicLinkLevels].contains(errno)
  }
}

extension Spool {
  /// Whether `error`, which working on one file in `directory` met, says nothing of the others: the directories that all jobs go through can be written to.
  package func concernsOneFile(_ error: SpoolError, in directory: Directory) -> Bool {
    guard error.mayConcernOneFile else { return false }
    for directory in Set([directory, .cur, .tmp]) {
      do throws(SpoolError) { try system.mayChange(root, Path(directory)) } catch { return false }
    }
    return true
  }
}
