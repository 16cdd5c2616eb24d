/* What a program costs that does nothing: the floor for every start. */
int main(void)
{
	return 0;
}
