internal import Glibc
internal import SystemPackage

/// A worker that was frozen (SIGSTOP, a suspended machine) may have lost its claims to others, whatever locks it has.
extension Claim {
  /// Who had a claim that was taken over.
  package enum FormerOwner: Sendable {
    /// Its lock was free, or there was none.
    case ended
    /// It has the lock, and has given no sign of life for a lease. It may wake up, and go on where it was.
    case mayWake
  }

  /// Whether this worker has given no sign of life for so long that another one may have the job. By this host's clock,
  /// which goes on while the process is stopped and while the machine sleeps.
  var isSilent: Bool {
    // The times of files are in whole seconds.
    secondsSinceBoot() - lastSign >= spool.lease - 1
  }

  /// To be called before a write or a publication: after a silence, makes sure that the job is still this worker's.
  ///
  /// No call of the kernel joins the check with what follows it. So a successor also continues in new inodes, which no
  /// descriptor of this worker leads to.
  /// - Throws: ``SpoolError``, ESTALE where the job is not this worker's any more.
  package func confirmAfterSilence() throws(SpoolError) {
    guard isSilent else { return }
    guard try ownership() == .ours else {
      throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    }
    lastSign = secondsSinceBoot()
    try spool.touch(file)
  }
}

extension Spool {
  /// Whether the owner of a claim has given no sign of life for a lease and still has its lock, so it was stopped and
  /// has not died. Where locks are not seen by other hosts, this is not known of their workers.
  /// - Throws: ``SpoolError``.
  package func isOwnerFrozen(of claim: FileName) throws(SpoolError) -> Bool {
    let path = Path(.cur, claim)
    do throws(SpoolError) {
      guard let status = try status(.cur, claim), status.isRegular, isFrozen(path, status, now: now()) else {
        return false
      }
      var file = try system.open(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      return try !file.lock()
    } catch  where error.isGone || error.isUnreadable {
      return false
    }
  }
}

/// CLOCK_BOOTTIME (clock_gettime(2)).
func secondsSinceBoot() -> Int64 { Host.current.milliseconds() / 1000 }
