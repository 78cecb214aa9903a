internal import Spool

/// The figures of one attempt, for its records and for the progress.
final class AttemptAccount {
  /// Counted from 1 since the job last came through `new/`; 0 before it is known.
  var number = 0
  let began = Timestamp.now()
  /// Bytes that came over the network, needed or not.
  var fetched: UInt64 = 0
  /// The length of the data when the attempt began with it, and where it let go of it.
  var lengthAtStart: UInt64 = 0
  var lengthAtEnd: UInt64 = 0
}
