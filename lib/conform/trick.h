/*
 * The hostile tools that no shell can be: rv-conform --trick NAME DIR NONCE PIDNS, with the words of a
 * script (lib/conform/ask.h).  lib/conform/hostile.h says what must become of each.
 */
#ifndef RV_CONFORM_TRICK_H
#define RV_CONFORM_TRICK_H

/* The exit status, 2 where there is no such trick; many do not return. */
int rv_trick(const char *name, const char *dir, const char *pidns);

#endif
