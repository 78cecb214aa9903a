internal import Glibc
internal import SystemPackage

extension SpoolError {
  /// The file system is gone: the program that serves it has ended (ENOTCONN, ECONNABORTED; fuse(4)), the server does
  /// not know it any more (ESTALE; nfs(5)), or the device is gone (ENODEV).
  package var isOfLostMount: Bool { [ENOTCONN, ECONNABORTED, ESTALE, ENODEV].contains(errno.rawValue) }
}

extension Spool {
  /// Whether the spool's file system is gone, and not only one file of it. It may be mounted again.
  package func isLost(_ error: SpoolError) -> Bool {
    guard error.isOfLostMount || error.errno == .ioError && !kind.isLocal else { return false }
    do throws(SpoolError) {
      // What a file system answers from its cache proves nothing.
      _ = try stream(.new).next()
      return false
    } catch {
      return error.isOfLostMount || error.errno == .ioError
    }
  }
}
