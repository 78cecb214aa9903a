/// What came of the attempt to claim a job.
package enum ClaimOutcome {
  case claimed(Claim)
  /// Another worker has it, or was faster: normal and silent.
  case unavailable
  /// It had gone before this worker tried, or a job of its name runs here.
  case gone
  /// Its owner has it at least until this second since the epoch.
  case leased(until: Int64)
  /// It may still be written; look again at this second since the epoch.
  case unfinished(Unfinished, until: Int64)
  /// Its next attempt is at this second since the epoch.
  case notDue(Int64)
  /// It is no valid job, and is in `failed/` under this name now, with a record of the reason.
  case rejected(FileName, Defect)
  /// The kernel does not allow this file to be examined, claimed or moved, so it stays where it is. For a file that is
  /// not a valid job there is a record in `failed/`.
  case barred(Defect)
}
